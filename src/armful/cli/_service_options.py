"""The arguments and options of the commands of the decision service."""

from typing import Annotated, Any

import typer


def _option(name: str, metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=text, **more)


Host = Annotated[str, _option("--host", "ADDRESS", "The address to listen at; other than loopback needs a key.")]
Port = Annotated[int, _option("--port", "N", "The port; 0 for one that is free.", min=0, max=65535)]
Workers = Annotated[int, _option("--workers", "N", "How many processes answer requests.", min=1, max=1024)]
UpdateEvery = Annotated[
    str | None, _option("--update-every", "TIME", "How often the model learns, like 30s, in place of campaign.toml's.")
]
AccessLog = Annotated[bool, typer.Option("--access-log/--no-access-log", help="Whether to log each request.")]
Roles = Annotated[
    list[str] | None,
    _option("--role", "ROLE", "What the key may do: decide, reward or read; may be repeated.", show_default=False),
]
Expires = Annotated[
    str | None, _option("--expires", "TIME", "When the key ends by itself, like 90d.", show_default=False)
]
Label = Annotated[str, _option("--label", "TEXT", "What the key is for, to recognise it in the list.")]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The id of the key, or the key.", show_default=False)]
Serve = Annotated[
    bool, typer.Option("--serve", help="Run a decision service instead, with made requests and its dashboard.")
]
Seconds = Annotated[
    float | None,
    _option("--seconds", "N", "With --serve: end by itself after so many seconds.", min=0.1, show_default=False),
]
DemoPort = Annotated[
    int | None,
    _option(
        "--port",
        "N",
        "With --serve: the port, 8000 if not given; 0 for one that is free.",
        min=0,
        max=65535,
        show_default=False,
    ),
]
