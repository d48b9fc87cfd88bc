package exposure

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var errNoProcess error = unix.ESRCH // of reading what was a process's

// look is a form of text that looks like a secret of any program.
type look struct {
	what    string
	literal string // that each begins with, or one letter before
	pattern *regexp.Regexp
}

var looks = []look{
	{"a private key", "-----BEGIN ", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	// As in a kubeconfig: base64 of "-----BEGIN " and of what follows for PKCS #1, #8 and SEC 1.
	{"a private key in base64", "LS0tLS1CRUdJTi", regexp.MustCompile(`LS0tLS1CRUdJTi(BSU0EgUFJJVkFURSBLRVkt|BQUklWQVRFIEtFWS0t|BFQyBQUklWQVRFIEtFWS0t)`)},
	{"a web token", "eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}`)},
	{"a bearer token", "earer ", regexp.MustCompile(`(?i)\bbearer [A-Za-z0-9._~+/-]{16,}`)},
}

// longest is more than any key or token has.
const longest = 16 << 10

// find returns the matches in a text. It looks where the literal is only: files of etcd are
// large.
func (l look) find(text []byte) (all [][]byte) {
	for from := 0; ; {
		at := bytes.Index(text[from:], []byte(l.literal))
		if at < 0 {
			return all
		}
		at += from
		// Two before: a letter of the match, and what is no part of it.
		window := text[max(0, at-2):min(len(text), at+longest)]
		if m := l.pattern.FindIndex(window); m != nil && m[0] <= 2 {
			all = append(all, window[m[0]:m[1]])
		}
		from = at + len(l.literal)
	}
}

// Secrets are values that nobody else may see, with a description of each.
type Secrets map[string]string

// Finding is a secret in a place.
type Finding struct {
	Where string // a file, or a process and what of it
	What  string // the secret, in words
}

// String returns one line.
func (f Finding) String() string { return f.Where + " has " + f.What }

// AddFolder adds the private keys and tokens in the files below a folder, and returns
// those files that others than the owner may read, and the folder itself if others may
// enter it.
func (s Secrets) AddFolder(dir string) (exposed []Finding, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm() != 0o700 {
		exposed = append(exposed, Finding{dir, fmt.Sprintf("mode %o instead of 700", info.Mode().Perm())})
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if gone(err) {
			return nil // etcd's, meanwhile
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if gone(err) {
			return nil
		} else if err != nil {
			return err
		}
		found := s.add(path, data)
		info, err := entry.Info()
		if gone(err) || !found {
			return nil
		}
		if err == nil && info.Mode().Perm()&0o177 != 0 {
			exposed = append(exposed, Finding{path, fmt.Sprintf("mode %o instead of 600, and a secret", info.Mode().Perm())})
		}
		return err
	})
	return exposed, err
}

var (
	pemKey  = look{"", "-----BEGIN ", regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----\s+.*?-----END`)}
	encoded = look{"", "LS0tLS1CRUdJTi", regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]+`)}
)

// add takes the secrets in a text, and reports whether there were any.
func (s Secrets) add(where string, text []byte) (found bool) {
	for _, m := range pemKey.find(text) {
		found = true
		// A line of it is enough, and is the same however line ends are written.
		for line := range bytes.Lines(m) {
			if line = bytes.TrimSpace(line); len(line) >= 40 {
				s[string(line)] = "a key of " + where
			}
		}
	}
	for _, m := range encoded.find(text) {
		pem, err := base64.StdEncoding.DecodeString(string(m))
		if err == nil && s.add(where, pem) {
			found, s[string(m)] = true, "a key of "+where
		}
	}
	for _, look := range looks[2:] {
		for _, m := range look.find(text) {
			found, s[string(m)] = true, look.what+" of "+where
		}
	}
	return found
}

// In returns the secrets in a text: those that are known, and what looks like one.
func (s Secrets) In(text []byte) []string {
	found := map[string]bool{}
	for value, what := range s {
		if bytes.Contains(text, []byte(value)) {
			found[what] = true
		}
	}
	for _, look := range looks {
		if len(look.find(text)) > 0 {
			found[look.what] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// InFolder returns the secrets in the files below a folder, and in their names.
func (s Secrets) InFolder(dir string) (all []Finding, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := []byte(path)
		if entry.Type().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
			text = append(text, path...)
		}
		for _, what := range s.In(text) {
			all = append(all, Finding{path, what})
		}
		return nil
	})
	return all, err
}

// InProcesses returns the secrets that every user of this machine can see of processes: in
// their command lines, in their names, and in their environments, if others may read
// those. Processes that have ended meanwhile show nothing.
func (s Secrets) InProcesses(pids []int) (all []Finding, err error) {
	for _, pid := range pids {
		for _, name := range []string{"cmdline", "comm", "environ"} {
			path := filepath.Join("/proc", strconv.Itoa(pid), name)
			if name == "environ" {
				info, err := os.Stat(path)
				if gone(err) {
					break
				} else if err != nil {
					return nil, err
				}
				if info.Mode().Perm()&0o077 == 0 {
					continue
				}
			}
			text, err := os.ReadFile(path)
			if gone(err) {
				break
			} else if err != nil {
				return nil, err
			}
			for _, what := range s.In(text) {
				all = append(all, Finding{path + " (" + strings.ReplaceAll(string(text[:min(len(text), 60)]), "\x00", " ") + ")", what})
			}
		}
	}
	return all, nil
}
