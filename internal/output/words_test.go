package output

import (
	"math"
	"testing"
)

func TestPlainAndEscaped(t *testing.T) {
	for _, tt := range []struct{ s, plain, escaped string }{
		{"", "", ""},
		{"istiod-strict-200", "istiod-strict-200", "istiod-strict-200"},
		{"a\nb\tc\x1b[31m\u202e", "a b c [31m ", `a b c \[31m `},
		{`\|*_<>`, `\|*_<>`, `\\\|\*\_&lt;>`},
		{"`x` [y](z)", "`x` [y](z)", "\\`x\\` \\[y\\](z)"},
		{"12.3µs ~~a~~", "12.3µs ~~a~~", `12.3µs \~\~a\~\~`},
	} {
		if got := Plain(tt.s); got != tt.plain {
			t.Errorf("Plain(%q) = %q, want %q", tt.s, got, tt.plain)
		}
		if got := Escaped(tt.s); got != tt.escaped {
			t.Errorf("Escaped(%q) = %q, want %q", tt.s, got, tt.escaped)
		}
	}
}

func TestDigits(t *testing.T) {
	for _, tt := range []struct {
		v        float64
		decimals int
		want     string
	}{
		{0, 4, "0.0000"}, {0, 0, "0"}, {0.00999, 4, "0.0100"}, {0.0999, 4, "0.0999"}, {0.09996, 4, "0.100"}, {0.0123, 3, "0.012"},
		{0.9994, 4, "0.999"}, {0.9996, 4, "1.00"}, {1.525, 4, "1.52"}, {1.525, 1, "1.5"}, {9.994, 4, "9.99"}, {9.996, 4, "10.0"},
		{79.64, 4, "79.6"}, {99.94, 2, "99.9"}, {99.96, 2, "100"}, {12345.6, 4, "12346"}, {1e21, 4, "1000000000000000000000"},
		{-0.5, 2, "-0.50"}, {-99.96, 2, "-100"}, {math.Inf(1), 4, "+Inf"}, {math.NaN(), 4, "NaN"},
	} {
		if got := Digits(tt.v, tt.decimals); got != tt.want {
			t.Errorf("Digits(%v, %d) = %q, want %q", tt.v, tt.decimals, got, tt.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		want string
	}{
		{0, "0.000s"}, {612.3, "612s"}, {1, "1.00s"}, {0.9996, "1.00s"}, {0.9994, "999ms"},
		{-0.0123, "-12.3ms"}, {0.9996e-3, "1.00ms"}, {1.2e-6, "1.20µs"}, {1.2e-9, "0.001µs"},
	} {
		scaled, unit := Seconds(tt.v)
		if got := Digits(scaled, 3) + unit; got != tt.want {
			t.Errorf("%v is %q, want %q", tt.v, got, tt.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0B", 999.6: "1000B", 1023.4: "1023B", 1023.6: "1.00KiB", 1024: "1KiB", 182 << 20: "182MiB", 182e6: "174MiB", 1000 << 20: "1000MiB",
		1023.7 * (1 << 20): "1.00GiB", -1.1 * (1 << 30): "-1.10GiB", 12.34 * (1 << 20): "12.3MiB", 5 << 50: "5120TiB",
	} {
		if got := Bytes(v); got != want {
			t.Errorf("Bytes(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 pods", 1: "1 pod", 2: "2 pods", 1600: "1600 pods"} {
		if got := Many(n, "pod"); got != want {
			t.Errorf("Many(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestNamedValues(t *testing.T) {
	if got := Counts(map[string]int{"services": 1, "pods": 3}); got != "3 pods, 1 services" {
		t.Errorf("counts: %q", got)
	}
	if got := Pairs(map[string]string{"version": "v1", "app": "a"}, ","); got != "app=a,version=v1" {
		t.Errorf("pairs: %q", got)
	}
	if got := Counts(nil) + Pairs(nil, ","); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestFirstOf(t *testing.T) {
	for want, all := range map[string][]string{
		"": nil, "a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b and 2 more": {"a", "b", "c", "d"},
	} {
		if got := FirstOf(all, 2); got != want {
			t.Errorf("%q: %q, want %q", all, got, want)
		}
	}
}

func TestArgument(t *testing.T) {
	for s, want := range map[string]string{
		"--pods": "--pods", "100,200": "100,200", "a/b.yaml": "a/b.yaml", "": "''", "my mesh.yaml": "'my mesh.yaml'", "it's": `'it'\''s'`, "a\x1b[31m": "'a [31m'", "$HOME": "'$HOME'",
	} {
		if got := Argument(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	if got, want := Command("scaler", "rollout", "--mesh", "my mesh.yaml"), "scaler rollout --mesh 'my mesh.yaml'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
