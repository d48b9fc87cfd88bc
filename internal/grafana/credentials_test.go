package grafana

import (
	. "github.com/onsi/ginkgo/v2"
)

var _ = It("hides the credentials of a URL", func() {
	t := GinkgoTB()
	for text, want := range map[string]string{
		"http://h:3000/sub":        "http://h:3000/sub",
		"http://me:hush@h:3000":    "...@h:3000",
		"http://me:hu@sh@h":        "...@h",
		"http://h?token=hush":      "http://h?...",
		"http://h#hush":            "http://h#...",
		"http://me:hush@h?t=hush":  "...@h?...",
		"http://me:hu?sh@h":        "...",
		"http://h?token=hush@hush": "...",
		"":                         "",
	} {
		if got := WithoutCredentials(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
})
