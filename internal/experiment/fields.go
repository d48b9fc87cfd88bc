package experiment

import (
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"
)

// CheckOneOf checks that a field has one of the values in want. Its error is a *[scenario.Error].
func CheckOneOf(field, value string, want []string) error {
	if slices.Contains(want, value) {
		return nil
	}
	return scenario.Refuse(field, value, "%s", strings.Join(want, " or "))
}

// CheckAddress checks that a field is HOST:PORT with a port of least or more. Its error is a
// *[scenario.Error].
func CheckAddress(field, address string, least int) error {
	_, text, err := net.SplitHostPort(address)
	if err == nil {
		if port, parseErr := strconv.Atoi(text); parseErr == nil && port >= least && port <= math.MaxUint16 {
			return nil
		}
	}
	return scenario.Refuse(field, address, "HOST:PORT, as in 127.0.0.1:15010")
}
