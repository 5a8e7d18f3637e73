"""Archives are read as the folders that were packed, and nothing in them is trusted."""

import io
import os
import shutil
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teller_core.errors import FormatError, InputError, LimitError, OutOfRoom, TellerError
from teller_core.ingest.files import archives, zip_members
from teller_core.ingest.files.archives import listed, unpacked
from teller_core.ingest.files.planning import Group
from teller_core.ingest.reading import content_id, plan, read_group
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

DATA = Path(__file__).parents[3] / "data"
ROW = b'{"ph": "G", "t": 1795961954186647253, "tid": 7, "name": "gc", "dur": 5, "gen": 1}\n'
Pack = Callable[[Path, Path], Path]


def bundle(folder: Path) -> Path:
    (folder / "cap").mkdir(parents=True)
    shutil.copy(DATA / "host_records" / "vllm" / "input.jsonl", folder / "cap" / "host-10556.jsonl")
    shutil.copy(DATA / "engine_log" / "vllm_json" / "input.jsonl", folder / "service.jsonl")
    shutil.copy(DATA / "client_records" / "vllm_metrics" / "input.jsonl", folder / "client.jsonl")
    (folder / "notes.txt").write_text("nothing that anybody knows\n")
    return folder


def tar(source: Path, target: Path, mode: str = "w", form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(target, mode, format=form) as archive:  # type: ignore[call-overload]
        archive.add(source, arcname=source.name)
    return target


def tar_zst(source: Path, target: Path) -> Path:
    plain = tar(source, target.with_suffix(".plain"))
    target.write_bytes(zstandard.compress(plain.read_bytes()))
    plain.unlink()
    return target


def zipped(source: Path, target: Path, kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(target, "w", kind) as archive:
        for path in sorted(source.rglob("*")):
            archive.write(path, path.relative_to(source.parent))
    return target


PACKS: dict[str, Pack] = {
    "tar": tar,
    "tar.gz": lambda source, target: tar(source, target, "w:gz"),
    "gnu tar": lambda source, target: tar(source, target, form=tarfile.GNU_FORMAT),
    "ustar": lambda source, target: tar(source, target, form=tarfile.USTAR_FORMAT),
    "tar.zst": tar_zst,
    "zip": zipped,
    "stored zip": lambda source, target: zipped(source, target, zipfile.ZIP_STORED),
}


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_a_packed_folder_is_the_capture_that_the_folder_is(tmp_path: Path, pack: Pack) -> None:
    folder = bundle(tmp_path / "run7")
    (plain,) = plan([folder])
    (group,) = plan([pack(folder, tmp_path / "whatever.bin")])
    assert (group.name, content_id(group)) == (plain.name, content_id(plain))
    ours, theirs = read_group(group), read_group(plain)
    assert sorted(ours.files) == sorted(theirs.files)
    assert (ours.decisions, ours.clients, ours.iterations) == (theirs.decisions, theirs.clients, theirs.iterations)


def test_importing_an_archive_leaves_nothing_but_the_store(tmp_path: Path) -> None:
    packed = tar(bundle(tmp_path / "run7"), tmp_path / "run7.tgz", "w:gz")
    (tmp_path / "kept").mkdir()
    with Store.open(tmp_path / "kept" / "t.db") as store:
        (first,) = import_paths([packed], store).captures
        (again,) = import_paths([tmp_path / "run7"], store).captures
    assert (first.id, first.already_known, again.already_known) == (again.id, False, True)
    assert os.listdir(tmp_path / "kept") == ["t.db"]


def test_folders_of_an_archive_are_captures_as_those_of_a_folder_are(tmp_path: Path) -> None:
    for name in ("a/1.jsonl", "a/2.jsonl", "b/c/3.jsonl", "b/.git/HEAD"):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_bytes(ROW)
    (tmp_path / "all" / "a" / "._1.jsonl").write_bytes(b"\0\5\26\7")
    groups = plan([zipped(tmp_path / "all", tmp_path / "all.zip")])
    assert [(group.name, [path.name for path in group.files]) for group in groups] == [
        ("a", ["1.jsonl", "2.jsonl"]),
        ("b/c", ["3.jsonl"]),
    ]
    assert {path.name: why for path, why in groups[0].skipped.items()} == {
        "._1.jsonl": "hidden_file",
        "HEAD": "hidden_folder",
    }


def hostile(kind: Callable[[str], tarfile.TarInfo | None], names: list[str]) -> bytes:
    """A tar archive with one good file, and one member a name as ``kind`` makes it."""
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w") as archive:
        for name in ["good.jsonl", *names]:
            made = tarfile.TarInfo(name) if name == "good.jsonl" else kind(name)
            if made is not None:
                made.size = len(ROW) if made.isreg() else 0
                archive.addfile(made, io.BytesIO(ROW))
    return room.getvalue()


def of_type(kind: bytes, target: str = "") -> Callable[[str], tarfile.TarInfo]:
    def make(name: str) -> tarfile.TarInfo:
        made = tarfile.TarInfo(name)
        made.type, made.linkname = kind, target
        return made

    return make


@pytest.mark.parametrize(
    ("kind", "names", "why"),
    [
        (of_type(tarfile.REGTYPE), ["../out.jsonl", "/etc/passwd", "a/../../b", "C:/x", "a\\..\\..\\b"], "unsafe_path"),
        (of_type(tarfile.REGTYPE), ["x" * 300, "/".join(["y" * 200] * 30)], "unsafe_path"),
        (of_type(tarfile.SYMTYPE, "/etc/passwd"), ["link"], "link_in_archive"),
        (of_type(tarfile.LNKTYPE, "good.jsonl"), ["hard"], "link_in_archive"),
        (of_type(tarfile.CHRTYPE), ["zero"], "no_regular_file"),
        (of_type(tarfile.FIFOTYPE), ["pipe"], "no_regular_file"),
    ],
)
def test_what_is_no_plain_file_inside_is_left_out_by_name(
    tmp_path: Path, kind: Callable[[str], tarfile.TarInfo], names: list[str], why: str
) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(hostile(kind, names))
    held = listed(path)
    assert set(held.files) == {"good.jsonl"}
    assert list(held.skipped.values()) == [why] * len(names)
    (group,) = plan([path])
    assert all(left.is_relative_to(path) for left in group.skipped)


def test_a_file_below_a_file_takes_neither_with_it(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(hostile(of_type(tarfile.REGTYPE), ["good.jsonl/below"]))
    held = listed(path)
    assert (set(held.files), dict(held.skipped)) == ({"good.jsonl"}, {"good.jsonl/below": "unsafe_path"})


def test_unpacked_files_lie_under_names_of_our_own(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(hostile(of_type(tarfile.REGTYPE), ["deep/er/other.jsonl"]))
    (tmp_path / "room").mkdir()
    (group,) = plan([path], together=True)
    places = unpacked(group.packed, tmp_path / "room")
    assert {place.name for place in places.values()} == {"good.jsonl", "other.jsonl"}
    assert all(place.parent.parent == tmp_path / "room" for place in places.values())
    assert all(stat.S_IMODE(place.parent.stat().st_mode) == 0o700 for place in places.values())


def test_of_two_files_with_one_path_the_later_counts(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for time in (b"11", b"12"):
            made = tarfile.TarInfo("host-7.jsonl")
            data = ROW.replace(b"1795", b"17" + time)
            made.size = len(data)
            archive.addfile(made, io.BytesIO(data))
    (group,) = plan([path])
    assert [pause.start // 10**14 for pause in read_group(group).pauses] == [17129]


def test_archives_inside_are_left_out_by_name(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "run7")
    tar(folder / "cap", folder / "inner.tar.gz", "w:gz")
    zipped(folder / "cap", folder / "inner.zip")
    held = listed(tar(folder, tmp_path / "x.tar"))
    assert dict(held.skipped) == {"run7/inner.tar.gz": "archive_in_archive", "run7/inner.zip": "archive_in_archive"}
    (group,) = plan([folder])
    told = {file.name: dict(file.problems) for file in read_group(group).files if not file.format}
    assert told["inner.zip"] == told["inner.tar.gz"] == {"archive_in_folder": 1}
    shutil.rmtree(folder / "cap")
    for path in folder.glob("*.*l"):
        path.unlink()
    with pytest.raises(InputError, match="Name the archives themselves"):
        plan([folder])


def bomb(size: int) -> bytes:
    packer = zstandard.ZstdCompressor(level=1)
    made = tarfile.TarInfo("bomb.log")
    made.size = size
    return packer.compress(made.tobuf() + bytes(size))


@pytest.mark.parametrize("kind", ["tar.zst", "zip"])
def test_a_bomb_is_refused_when_it_has_expanded_too_far(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "EXPANSION_GRACE", 1 << 20)
    monkeypatch.setattr("teller_core.ingest.files.source.EXPANSION_GRACE", 1 << 20)
    path = tmp_path / "bomb"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.log", bytes(64 << 20))
    else:
        path.write_bytes(bomb(64 << 20))
    with pytest.raises(LimitError, match="expands over 400 times"):
        plan([path])


def test_too_many_members_and_too_long_a_list_of_them_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    path = tmp_path / "x.tar"
    path.write_bytes(hostile(of_type(tarfile.REGTYPE), ["a", "b", "c"]))
    with pytest.raises(LimitError, match="over 3 files"):
        plan([path])
    monkeypatch.setattr(zip_members, "MAX_DIRECTORY", 100)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number in range(9):
            archive.writestr(f"{number}.jsonl", ROW)
    with pytest.raises(LimitError, match="list of members"):
        plan([tmp_path / "x.zip"])


def test_a_header_that_claims_a_gigabyte_of_names_is_refused(tmp_path: Path) -> None:
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE):
        made = tarfile.TarInfo("x")
        made.type, made.size = kind, 1 << 30
        (tmp_path / "x.tar").write_bytes(made.tobuf())
        with pytest.raises(LimitError, match="header"):
            plan([tmp_path / "x.tar"])


def test_a_disk_without_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (group,) = plan([tar(bundle(tmp_path / "run7"), tmp_path / "x.tar")])
    usage: Any = lambda _: shutil._ntuple_diskusage(10**6, 10**6, 0)  # type: ignore[attr-defined]  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)
    with pytest.raises(OutOfRoom, match="the disk of the database has less"):
        read_group(group)


def test_an_archive_that_changes_between_listing_and_reading_is_refused(tmp_path: Path) -> None:
    path = tar(bundle(tmp_path / "run7"), tmp_path / "x.tar")
    (group,) = plan([path])
    shutil.rmtree(tmp_path / "run7" / "cap")
    tar(tmp_path / "run7", path)
    with pytest.raises(FormatError, match="changed while it was read"):
        read_group(group)


def test_encrypted_and_oddly_compressed_members_are_left_out_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.log", b"INFO 11-29 14:19:42 [a.py:1] x\n" * 9)
        archive.writestr("good.jsonl", ROW, zipfile.ZIP_DEFLATED)
        archive.writestr("locked.jsonl", ROW, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\1\2")
    data[at + 8] |= 1
    path.write_bytes(data)
    assert dict(listed(path).skipped) == {"a.log": "unknown_compression", "locked.jsonl": "encrypted_member"}


SAMPLES = {
    "tar": hostile(of_type(tarfile.REGTYPE), ["a/b.log", "é" * 120]),
    "links": hostile(of_type(tarfile.SYMTYPE, "x" * 200), ["a", "b"]),
}


def _zip_sample() -> bytes:
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a/b.jsonl", "é.log", "c/"):
            archive.writestr(name, ROW * 9)
    return room.getvalue()


SAMPLES["zip"] = _zip_sample()


@pytest.mark.parametrize("at", range(26, 60))
def test_a_damaged_member_of_a_zip_is_refused(tmp_path: Path, at: int) -> None:
    data = bytearray(SAMPLES["zip"])
    data[at] ^= 0x10
    (tmp_path / "x").write_bytes(data)
    try:
        listed(tmp_path / "x")
    except FormatError as error:
        assert "the archive is damaged" in str(error)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.integers(0, 1 << 14), st.binary(min_size=1, max_size=12)), max_size=6),
    st.integers(0, 1 << 14),
)
def test_a_damaged_archive_is_refused_or_listed_and_nothing_else(
    tmp_path: Path, which: str, spots: list[tuple[int, bytes]], cut: int
) -> None:
    data = bytearray(SAMPLES[which])
    for spot, new in spots:
        at = spot % len(data)
        data[at : at + len(new)] = new
    path = tmp_path / "x"
    path.write_bytes(data[: max(4, len(data) - cut % len(data))])
    try:
        held = listed(path)
        group = Group("x", path, [path / name for name in held.files])
        packed = {path / name: member for name, member in held.files.items()}
        room = Path(mkdtemp(dir=tmp_path))
        assert len(unpacked(packed, room) if packed else {}) == len(group.files)
        assert all(child.is_file() for child in room.glob("*/*"))
    except TellerError as error:
        assert "\n" not in str(error)


def test_a_zip_of_a_large_kind_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.jsonl", "w", force_zip64=True) as f,
    ):
        f.write(ROW)
    assert list(listed(path).files) == ["a.jsonl"]
    # A record of the end in 64 bits, as archives of over 65,535 files have.
    data = path.read_bytes()
    at = data.rfind(b"PK\5\6")
    size, offset = struct.unpack_from("<II", data, at + 12)
    end64 = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, size, offset)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, at, 1)
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(data[:at] + end64 + locator + end)
    assert list(listed(path).files) == ["a.jsonl"]
