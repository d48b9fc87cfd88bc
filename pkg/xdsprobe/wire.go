package xdsprobe

import (
	"errors"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// errWire is the error for bytes that are not a valid message.
var errWire = errors.New("invalid protobuf message")

// message reads the fields of one message, in the order of the wire:
//
//	for m := read(b); m.next(); {
//		switch { case m.is(1, protowire.BytesType): … m.bytes … }
//	}
//
// A field of a known number with another wire type is an unknown field, as in
// every implementation of protobuf.
type message struct {
	rest   []byte
	number protowire.Number
	wire   protowire.Type
	bytes  []byte // of a BytesType field
	varint uint64 // of a VarintType field
	err    error  // what ended the loop, nil at the end of the message
}

func read(b []byte) message { return message{rest: b} }

// next advances to the next field. It returns false at the end of the message and after
// an error.
func (m *message) next() bool {
	if m.err != nil || len(m.rest) == 0 {
		return false
	}
	number, wire, n := protowire.ConsumeTag(m.rest)
	if n < 0 || number > protowire.MaxValidNumber {
		m.err = errWire
		return false
	}
	value := m.rest[n:]
	switch wire {
	case protowire.BytesType:
		m.bytes, n = protowire.ConsumeBytes(value)
	case protowire.VarintType:
		m.varint, n = protowire.ConsumeVarint(value)
	default:
		n = protowire.ConsumeFieldValue(number, wire, value)
	}
	if n < 0 {
		m.err = errWire
		return false
	}
	m.number, m.wire, m.rest = number, wire, value[n:]
	return true
}

func (m *message) is(number protowire.Number, wire protowire.Type) bool {
	return m.number == number && m.wire == wire
}

// text returns the field as a string; if it is not UTF-8, the message gets an error.
func (m *message) text() []byte {
	if !utf8.Valid(m.bytes) {
		m.err = errWire
	}
	return m.bytes
}

// packed is a google.protobuf.Any, as far as it was read.
type packed struct {
	typeURL, value []byte
}

// merge reads b into a, as protobuf merges a repeated singular field.
func (a *packed) merge(b []byte) error {
	m := read(b)
	for m.next() {
		switch {
		case m.is(1, protowire.BytesType):
			a.typeURL = m.text()
		case m.is(2, protowire.BytesType):
			a.value = m.bytes
		}
	}
	return m.err
}

// validAs reports whether a is a valid message of one of these types, which known has.
func (a *packed) validAs(typeURLs ...string) bool {
	// Go copies no bytes for a comparison of strings, and would for an argument of slices.Contains.
	isOne := slices.ContainsFunc(typeURLs, func(u string) bool { return u == string(a.typeURL) })
	return isOne && known().packed[string(a.typeURL)].valid(a.value)
}
