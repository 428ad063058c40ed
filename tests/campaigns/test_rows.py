import gzip
import json
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from armful.campaigns.reading import _rows as rows_module
from armful.campaigns.reading._rows import open_rows
from armful.errors import FileFormatError
from tests.tables.test_build import Frame

PEOPLE = pa.table(
    {
        "id": ["007", "8", "9"],
        "job": ["clerk", "nurse", "clerk"],
        "age": pa.array([30, 40, None], pa.int64()),
        "since": [date(2020, 1, 1), date(2021, 1, 1), None],
    }
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def csv(folder, content, name="people.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(source, **options):
    """Return all rows as a table, dictionaries as plain texts."""
    reader = open_rows(source, **options)
    batches = list(reader.batches)
    assert reader.n_rows in (None, sum(batch.num_rows for batch in batches))
    assert reader.read_bytes() == (reader.n_bytes or 0)
    columns = {name: pa.chunked_array([plain(batch.column(name)) for batch in batches]) for name in reader.schema.names}
    return pa.table(columns)


def plain(column):
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


class TestCsv:
    def test_numbers_are_floats_and_the_rest_is_text(self, folder):
        table = read(csv(folder, "id,job,age,since\n007,clerk,30,2020-01-01\n8,nurse,,\n"), text=["id"])
        assert table.to_pylist() == [
            {"id": "007", "job": "clerk", "age": 30.0, "since": "2020-01-01"},
            {"id": "8", "job": "nurse", "age": None, "since": ""},
        ]

    def test_types_do_not_depend_on_the_first_rows(self, folder, monkeypatch):
        monkeypatch.setattr(rows_module, "CSV_BLOCK", 1 << 12)
        head = "id,whole,empty,word,day\n" + "1,2,,a,2020-01-01\n" * 2000
        table = read(csv(folder, head + "x7,2.5,3.5,b,soon\n"), text=["id", "word", "day"])
        assert table.num_rows == 2001
        assert table.slice(2000).to_pylist() == [{"id": "x7", "whole": 2.5, "empty": 3.5, "word": "b", "day": "soon"}]
        assert table.slice(0, 1).to_pylist() == [
            {"id": "1", "whole": 2.0, "empty": None, "word": "a", "day": "2020-01-01"}
        ]

    def test_columns_are_read_in_the_order_asked_for(self, folder):
        path = csv(folder, "a,b,c\n1,2,3\n")
        assert read(path, columns=["c", "a"]).to_pylist() == [{"c": 3.0, "a": 1.0}]

    def test_texts_that_repeat_are_read_as_dictionaries_and_ids_are_not(self, folder):
        path = csv(folder, "id,job\n" + "".join(f"{i},{'clerk' if i % 2 else 'nurse'}\n" for i in range(100)))
        batch = next(open_rows(path, text=["id", "job"]).batches)
        assert batch.schema.field("id").type == pa.string()
        assert pa.types.is_dictionary(batch.schema.field("job").type)

    def test_byte_order_mark_quotes_and_line_breaks_in_values(self, folder):
        path = csv(folder, '\ufeffid;"a;b"\r\n"1";"two\r\nlines; ""quoted"""\r\n'.encode())
        assert read(path, text=["id"], delimiter=";").to_pylist() == [{"id": "1", "a;b": 'two\r\nlines; "quoted"'}]

    def test_compressed(self, folder):
        path = csv(folder, gzip.compress(b"id,x\na,1\nb,2\n"), "people.csv.gz")
        assert read(path).to_pylist() == [{"id": "a", "x": 1.0}, {"id": "b", "x": 2.0}]

    def test_several_files_follow_each_other(self, folder):
        paths = [csv(folder, "id,x\n1,2\n", "a.csv"), csv(folder, "x,id\n3.5,b\n", "b.csv")]
        assert read(paths, text=["id"]).to_pylist() == [{"id": "1", "x": 2.0}, {"id": "b", "x": 3.5}]

    def test_progress_in_bytes(self, folder, monkeypatch):
        monkeypatch.setattr(rows_module, "CSV_BLOCK", 1 << 12)
        path = csv(folder, "x\n" + "1\n" * 200_000)
        reader = open_rows(path)
        seen = [reader.read_bytes() for _ in reader.batches]
        assert reader.n_bytes == path.stat().st_size == reader.read_bytes()
        assert seen == sorted(seen)
        assert 0 < seen[0] < reader.n_bytes


class TestBadCsv:
    def refusal(self, error, path, **options):
        with pytest.raises(error) as caught:
            list(open_rows(path, **options).batches)
        message = str(caught.value)
        assert "\n" not in message
        return message.replace(f"{path}", "FILE")

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"", "FILE is empty"),
            (b"\n\n\n", "FILE is empty"),
            ("id,café\n1,naïve\n".encode("latin-1"), "FILE is not UTF-8: save it as UTF-8"),
            ("id,job\n1,naïve\n".encode("latin-1"), "FILE is not UTF-8: save it as UTF-8"),
            ("id,job\n1,clerk\n".encode("utf-16"), "FILE is not UTF-8: save it as UTF-8"),
            (b"id;job\n1;clerk\n", "FILE looks separated by ';': set delimiter to ';', or save the file with ','"),
            (b"id,x\n1,2\n1,2,3\n", "FILE has a row of 3 values, and its header has 2: '1,2,3'"),
        ],
    )
    def test_a_file_that_is_no_good_csv_is_one_sentence(self, folder, content, sentence):
        assert self.refusal(FileFormatError, csv(folder, content)) == sentence

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"id,x\n", "FILE holds no rows"),
            (b"id,x,x\n1,2,3\n", "column 'x' is there twice in FILE: each must be there once"),
        ],
    )
    def test_a_file_without_rows_or_with_a_column_twice(self, folder, content, sentence):
        assert self.refusal(ValueError, csv(folder, content)) == sentence

    def test_latin_1_far_down_the_file(self, folder, monkeypatch):
        monkeypatch.setattr(rows_module, "CSV_BLOCK", 1 << 12)
        path = csv(folder, b"id,job\n" + b"1,clerk\n" * 2000 + b"2,na\xefve\n")
        assert self.refusal(FileFormatError, path) == "FILE is not UTF-8: save it as UTF-8"

    def test_text_among_numbers_far_down_the_file_is_named_with_its_column(self, folder, monkeypatch):
        monkeypatch.setattr(rows_module, "CSV_BLOCK", 1 << 12)
        path = csv(folder, "id,x,y\n" + "1,2,true\n" * 2000 + "1,ten,true\n")
        expected = "column 'x' of FILE should hold numbers, got 'ten'"
        assert self.refusal(ValueError, path) == self.refusal(ValueError, path, columns=["y", "x"]) == expected
        path = csv(folder, "id,x,y\n" + "1,2,true\n" * 2000 + "1,2,maybe\n")
        assert self.refusal(ValueError, path) == "column 'y' of FILE should hold true or false, got 'maybe'"

    def test_a_quote_that_is_not_closed(self, folder, monkeypatch):
        monkeypatch.setattr(rows_module, "CSV_BLOCK", 1 << 12)
        path = csv(folder, 'id,x\n1,2\n2,"3\n' + "4,5\n" * 5000)
        assert "close the quote that is left open in it" in self.refusal(FileFormatError, path)

    def test_a_column_that_is_not_there(self, folder):
        path = csv(folder, "id,x\n1,2\n")
        message = self.refusal(ValueError, path, columns=["id", "age"])
        assert message == "FILE has no column 'age'; its columns are 'id', 'x'"
        second = csv(folder, "id\n1\n", "b.csv")
        assert self.refusal(ValueError, [path, second], columns=["x"]).endswith(
            "has no column 'x'; its columns are 'id'"
        )

    def test_a_file_that_is_not_there(self, folder):
        assert "does not exist" in self.refusal(FileNotFoundError, folder / "none.csv")

    def test_csv_and_parquet_together(self, folder):
        pq.write_table(PEOPLE, folder / "b.parquet")
        message = self.refusal(ValueError, [csv(folder, "id\n1\n"), folder / "b.parquet"])
        assert message.endswith("are of several formats: give CSV files or Parquet files, not both")

    @pytest.mark.parametrize("delimiter", ["", ",,", '"', "é"])
    def test_a_delimiter_that_is_none(self, folder, delimiter):
        assert "delimiter must be one character" in self.refusal(ValueError, csv(folder, "a\n1\n"), delimiter=delimiter)


class TestParquet:
    def test_types_stay_as_they_are(self, folder):
        pq.write_table(PEOPLE, folder / "people.parquet")
        assert read(folder / "people.parquet").to_pylist() == PEOPLE.to_pylist()
        assert read(folder / "people.parquet", columns=["age", "id"]).column_names == ["age", "id"]

    def test_a_folder_of_files_in_small_batches(self, folder, monkeypatch):
        monkeypatch.setattr(rows_module, "BATCH_ROWS", 7)
        table = pa.table({"id": range(50), "c": ["x", "y"] * 25})
        pq.write_table(table.slice(0, 30), folder / "a.parquet", row_group_size=10)
        pq.write_table(table.slice(30), folder / "b.parquet")
        reader = open_rows(folder)
        seen = [(batch.num_rows, reader.read_bytes()) for batch in reader.batches]
        assert max(n for n, _ in seen) <= 7
        assert reader.n_rows == sum(n for n, _ in seen) == 50
        assert seen[-1][1] == reader.n_bytes == sum(each.stat().st_size for each in folder.iterdir())
        assert read(folder).to_pylist() == table.to_pylist()

    def test_texts_that_repeat_are_read_as_dictionaries_and_ids_are_not(self, folder):
        table = pa.table({"id": [str(i) for i in range(100)], "job": ["clerk", "nurse"] * 50, "no": [None] * 100})
        pq.write_table(table, folder / "a.parquet")
        batch = next(open_rows(folder / "a.parquet").batches)
        assert batch.schema.field("id").type == pa.string()
        assert pa.types.is_dictionary(batch.schema.field("job").type)
        assert read(folder / "a.parquet").to_pylist() == table.to_pylist()

    def test_damaged_files_are_one_sentence(self, folder):
        path = folder / "people.parquet"
        pq.write_table(pa.table({"id": range(10_000), "x": np.random.default_rng(0).normal(size=10_000)}), path)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(FileFormatError, match="could not be read as Parquet"):
            open_rows(path)
        path.write_bytes(whole[:1000] + bytes(20_000) + whole[21_000:])
        with pytest.raises((FileFormatError, OSError), match=r"people.parquet could not be read"):
            list(open_rows(path).batches)
        path.write_bytes(b"")
        with pytest.raises(FileFormatError, match="could not be read as Parquet"):
            open_rows(path)

    def test_no_rows_and_missing_columns(self, folder):
        path = folder / "people.parquet"
        pq.write_table(PEOPLE.slice(0, 0), path)
        with pytest.raises(ValueError, match=r"people.parquet holds no rows"):
            open_rows(path)
        pq.write_table(PEOPLE, path)
        with pytest.raises(ValueError, match=r"people.parquet has no column 'wage'; its columns are 'id'"):
            open_rows(path, columns=["wage"])


class TestMemory:
    def test_arrow_tables_and_data_frames_are_read_in_batches(self, monkeypatch):
        monkeypatch.setattr(rows_module, "BATCH_ROWS", 2)
        for source in (PEOPLE, Frame(PEOPLE), PEOPLE.to_reader()):
            reader = open_rows(source, columns=["age", "id"])
            batches = list(reader.batches)
            assert [batch.num_rows for batch in batches] == [2, 1]
            assert pa.Table.from_batches(batches).to_pylist() == PEOPLE.select(["age", "id"]).to_pylist()
            assert reader.n_bytes is None
        assert open_rows(PEOPLE).n_rows == 3

    def test_anything_else_is_refused(self):
        for source in (3, None, np.zeros((2, 2)), {"a": [1]}):
            with pytest.raises(ValueError, match="source must be a file, a folder of Parquet files, a DataFrame or"):
                open_rows(source)

    def test_columns_that_are_not_there(self):
        with pytest.raises(ValueError, match="the Table has no column 'wage'"):
            open_rows(PEOPLE, columns=["wage"])


def test_the_same_people_give_the_same_rows_from_every_format(folder):
    table = PEOPLE.cast(
        pa.schema([("id", pa.string()), ("job", pa.string()), ("age", pa.float64()), ("since", pa.string())])
    )
    pq.write_table(table, folder / "a.parquet")
    pcsv.write_csv(table.set_column(3, "since", table["since"].fill_null("")), folder / "a.csv")
    texts = ["id", "job", "since"]
    from_csv, from_parquet = read(folder / "a.csv", text=texts), read(folder / "a.parquet", text=texts)
    same = json.dumps(from_parquet.set_column(3, "since", from_parquet["since"].fill_null("")).to_pylist())
    assert json.dumps(from_csv.to_pylist()) == same
