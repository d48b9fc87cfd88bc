package onecall

import (
	"encoding/binary"
	"net"
)

// recordHeader is the length of a TLS record's header (RFC 8446, 5.1). Its last two bytes
// are the length of the rest.
const recordHeader = 5

// records reads a connection one TLS record at a time. With larger reads the buffer that
// crypto/tls keeps for each connection grows to 32 kB, although 18 kB hold the largest
// record.
type records struct {
	net.Conn
	header [recordHeader]byte
	have   int // bytes of the header received
	left   int // of the record
}

// Read implements net.Conn.
func (r *records) Read(p []byte) (int, error) {
	if r.left > 0 {
		n, err := r.Conn.Read(p[:min(len(p), r.left)])
		r.left -= n
		return n, err
	}
	n, err := r.Conn.Read(p[:min(len(p), recordHeader-r.have)])
	r.have += copy(r.header[r.have:], p[:n])
	if r.have == recordHeader {
		r.have, r.left = 0, int(binary.BigEndian.Uint16(r.header[recordHeader-2:]))
	}
	return n, err
}
