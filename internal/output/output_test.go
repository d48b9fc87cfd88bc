package output

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPrint(t *testing.T) {
	object := struct {
		Name string `json:"name"`
		Pods []int  `json:"pods"`
	}{"a<b>&c", []int{}}
	text := func(d *Document) { d.Title("a") }
	for format, want := range map[string]string{
		"table":    "a\n",
		"markdown": "### a\n",
		"json":     "{\n  \"name\": \"a<b>&c\",\n  \"pods\": []\n}\n",
		"yaml":     "name: a<b>&c\npods: []\n",
	} {
		var b strings.Builder
		if err := Print(&b, format, "a thing", object, text); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if b.String() != want {
			t.Errorf("%s: %q, want %q", format, b.String(), want)
		}
	}
}

var errFull = errors.New("no room")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestPrintSaysWhatFailed(t *testing.T) {
	text := func(d *Document) { d.Title("a") }
	for _, tt := range []struct {
		name, format string
		to           io.Writer
		object       any
		want         string
	}{
		{"no such format", "xml", io.Discard, 1, `printing a thing as "xml": want one of table, wide, json, yaml, markdown`},
		{"not JSON", "json", io.Discard, func() {}, "writing a thing as json: json: unsupported type: func()"},
		{"disk full", "table", fullDisk{}, 1, "writing a thing as table: no room"},
	} {
		if err := Print(tt.to, tt.format, "a thing", tt.object, text); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if err := Print(fullDisk{}, "json", "a thing", 1, text); !errors.Is(err, errFull) {
		t.Errorf("%v does not wrap its cause", err)
	}
}

// Programs are not made to wait for a text that they do not get.
func TestTextIsMadeForReadersAlone(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		if err := Print(io.Discard, format, "a thing", 1, nil); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}
