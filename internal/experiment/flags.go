package experiment

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
)

// CheckOneOf checks that a flag has one of the values in want. Its error names the
// flag, the value and what is wanted.
func CheckOneOf(flag, value string, want []string) error {
	if slices.Contains(want, value) {
		return nil
	}
	return fmt.Errorf("parsing --%s %q: want %s", flag, value, strings.Join(want, " or "))
}

// CheckAddress checks that a flag is HOST:PORT with a port of least or more. Its
// error names the flag, the value and what is wanted.
func CheckAddress(flag, address string, least int) error {
	_, text, err := net.SplitHostPort(address)
	if err == nil {
		if port, parseErr := strconv.Atoi(text); parseErr == nil && port >= least && port <= math.MaxUint16 {
			return nil
		}
	}
	return fmt.Errorf("parsing --%s %q: want HOST:PORT, as in 127.0.0.1:15010", flag, address)
}
