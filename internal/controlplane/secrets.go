package controlplane

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Masked is what a record has in place of a value that looks like a secret.
const Masked = "(masked)"

// secretWords are parts of the names of variables that hold secrets.
var secretWords = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PWD", "CREDENTIAL", "CREDENTIALS", "APIKEY", "KEY", "AUTH", "AUTHORIZATION", "COOKIE",
}

// secretValue matches keys in PEM, JSON web tokens, bearer tokens, access keys of
// clouds and hosts of code, and URLs with a password.
var secretValue = regexp.MustCompile(`-----BEGIN |\beyJ[A-Za-z0-9_-]{10,}\.|(?i:\bbearer )|\bAKIA[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|://[^/\s:@]*:[^/\s@]+@`)

// mask returns a variable's value as a record may have it: anybody may read a
// record. By its name it is a secret unless it is a number, a truth value or a
// length of time, as settings are that are about secrets.
func mask(name, value string) string {
	if value == "" {
		return value
	}
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	named := slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) })
	if named && !plain(value) || secretValue.MatchString(value) {
		return Masked
	}
	return value
}

func plain(value string) bool {
	_, number := strconv.ParseFloat(value, 64)
	_, truth := strconv.ParseBool(value)
	_, length := time.ParseDuration(value)
	// A long number may well be a secret.
	return truth == nil || length == nil || number == nil && len(value) < 10
}

// MaskEnv returns variables of an environment, NAME=VALUE, as a record may have them.
func MaskEnv(env []string) []string {
	masked := slices.Clone(env)
	for i, kv := range masked {
		if name, value, ok := strings.Cut(kv, "="); ok {
			masked[i] = name + "=" + mask(name, value)
		}
	}
	return masked
}
