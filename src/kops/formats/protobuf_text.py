"""Parses the text of a ``.proto`` file into its descriptor (``FileDescriptorProto``): messages, enums, fields; options are skipped.

The grammar is that of the language specifications of proto2, proto3 and edition 2023. Google's library has no parser for it in Python.
``proto-schema-parser`` 2.1, the maintained one, reads octal numbers of enum values as decimal, rejects hexadecimal field numbers, continues
after errors, and takes twenty times as long: wrong values are worse than the lines of this module.
This module needs ``protobuf``, so it is imported only where it is used.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/ | (?P<token>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | \.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)* | [+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+) | .)""",
    re.VERBOSE | re.DOTALL,
)
_SCALARS = {
    name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool"),
        *("string", "bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
    )
}
_LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
_EDITION_2023 = 1000
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class BadProto(ValueError):
    """A text that is not a valid ``.proto`` file; the message names the line."""


def parse_proto(name: str, text: str) -> FileDescriptorProto:
    """Return the descriptor of a file.

    :param name: of the file, as others import it
    :raises BadProto: naming the line
    """
    return _Parser(name, text).file()


class _Parser:
    def __init__(self, name: str, text: str) -> None:
        self._text = text
        self._tokens = [(found["token"], found.start()) for found in _TOKEN.finditer(text) if found["token"]]
        self._at = 0
        self._file = FileDescriptorProto(name=name)

    def file(self) -> FileDescriptorProto:
        while self._at < len(self._tokens):
            word = self._next()
            if word in ("syntax", "edition"):
                self._expect("=")
                self._syntax(word, _unquoted(self._next()))
                self._expect(";")
            elif word == "package":
                self._file.package = self._next()
                self._expect(";")
            elif word == "import":
                self._import()
            elif word == "message":
                self._message(self._file.message_type.add())
            elif word == "enum":
                self._enum(self._file.enum_type.add())
            elif word == "extend":
                self._skip_extension()
            elif word in ("option", "service"):
                self._skip_statement()
            elif word != ";":
                raise self._wrong(f"{word!r} where a message, an enum or another definition belongs")
        return self._file

    def _syntax(self, word: str, value: str) -> None:
        if word == "edition":
            self._file.syntax, self._file.edition = "editions", _EDITION_2023
        elif value in ("proto2", "proto3"):
            self._file.syntax = value
        else:
            raise self._wrong(f"the syntax {value!r}")

    def _import(self) -> None:
        word = self._next()
        if word in ("public", "weak", "option"):
            if word == "public":
                self._file.public_dependency.append(len(self._file.dependency))
            word = self._next()
        self._file.dependency.append(_unquoted(word))
        self._expect(";")

    def _message(self, message: DescriptorProto) -> None:
        message.name = self._next()
        self._expect("{")
        self._body(message)

    def _body(self, message: DescriptorProto) -> None:
        """Read the body of a message, after its opening brace."""
        entries: list[DescriptorProto] = []
        synthetic: list[FieldDescriptorProto] = []
        while (word := self._next()) != "}":
            if word == "message":
                self._message(message.nested_type.add())
            elif word == "enum":
                self._enum(message.enum_type.add())
            elif word == "oneof":
                self._oneof(message)
            elif word == "map" and self._peek() == "<":
                entries.append(self._map(message))
            elif word in ("option", "reserved", "extensions"):
                self._skip_statement()
            elif word == "extend":
                self._skip_extension()
            elif word != ";":
                field = self._field(message, word)
                if field.proto3_optional:
                    synthetic.append(field)
        # Indexes of the wire format count only declared messages, so entries of maps come after them.
        message.nested_type.extend(entries)
        for field in synthetic:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")

    def _field(self, message: DescriptorProto, word: str, oneof: int | None = None) -> FieldDescriptorProto:
        field = message.field.add(label=_LABELS.get(word, FieldDescriptorProto.LABEL_OPTIONAL))
        if word in _LABELS:
            if word == "optional" and self._file.syntax == "proto3":
                field.proto3_optional = True
            word = self._next()
        if oneof is not None:
            field.oneof_index = oneof
        if word == "group":
            return self._group(message, field)
        _set_type(field, word)
        self._named(field)
        self._expect(";")
        return field

    def _group(self, message: DescriptorProto, field: FieldDescriptorProto) -> FieldDescriptorProto:
        group = message.nested_type.add()
        self._named(field)
        group.name, field.name = field.name, field.name.lower()
        field.type, field.type_name = FieldDescriptorProto.TYPE_GROUP, group.name
        self._expect("{")
        self._body(group)
        return field

    def _named(self, field: FieldDescriptorProto) -> None:
        """Read name, number and options of a field."""
        field.name = self._name()
        self._expect("=")
        field.number = self._number()
        if self._peek() == "[":
            self._next()
            self._skip_to("]")

    def _oneof(self, message: DescriptorProto) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._name())
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                self._skip_statement()
            elif word != ";":
                self._field(message, word, index)

    def _map(self, message: DescriptorProto) -> DescriptorProto:
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        field = message.field.add(label=FieldDescriptorProto.LABEL_REPEATED)
        self._named(field)
        self._expect(";")
        entry = DescriptorProto(name="".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry")
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            _set_type(entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL), kind)
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, entry.name
        return entry

    def _enum(self, enum: EnumDescriptorProto) -> None:
        enum.name = self._name()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                name = self._next()
                self._expect("=")
                enum.options.allow_alias = enum.options.allow_alias or (name == "allow_alias" and self._peek() == "true")
                self._skip_to(";")
            elif word == "reserved":
                self._skip_statement()
            elif word != ";":
                self._expect("=")
                enum.value.add(name=word, number=self._number())
                if self._peek() == "[":
                    self._next()
                    self._skip_to("]")
                self._expect(";")

    def _skip_statement(self) -> None:
        """Skip an option, a service or a reservation, up to its semicolon or the end of its block."""
        while (word := self._next()) != ";":
            if word in _CLOSING:
                self._skip_to(_CLOSING[word])
                if word == "{":
                    return

    def _skip_extension(self) -> None:
        self._next()
        self._expect("{")
        self._skip_to("}")

    def _skip_to(self, closing: str) -> None:
        while (word := self._next()) != closing:
            if word in _CLOSING:
                self._skip_to(_CLOSING[word])

    def _name(self) -> str:
        word = self._next()
        if not re.fullmatch(r"[A-Za-z_]\w*", word):
            raise self._wrong(f"{word!r} where a name belongs")
        return word

    def _number(self) -> int:
        word = self._next()
        try:
            return int(word, 0) if not re.fullmatch(r"0\d+", word) else int(word, 8)
        except ValueError:
            raise self._wrong(f"{word!r} where a number belongs") from None

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise self._wrong("the text ends in the middle")
        self._at += 1
        return self._tokens[self._at - 1][0]

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _expect(self, wanted: str) -> None:
        word = self._next()
        if word != wanted:
            raise self._wrong(f"{word!r} where {wanted!r} belongs")

    def _wrong(self, what: str) -> BadProto:
        at = self._tokens[max(self._at - 1, 0)][1] if self._tokens else 0
        return BadProto(f"line {self._text.count(chr(10), 0, at) + 1}: {what}")


def _set_type(field: FieldDescriptorProto, word: str) -> None:
    if word in _SCALARS:
        field.type = _SCALARS[word]
    else:
        field.type_name = word


def _unquoted(word: Any) -> str:
    return str(word)[1:-1]
