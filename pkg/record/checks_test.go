package record

import "testing"

func TestChecksText(t *testing.T) {
	got := ChecksText([]LatencyCheck{
		{Variant: "permissive", Plaintext: CheckAnswered, Caller: CallerSeen},
		{Variant: "strict", Plaintext: CheckRefused, NoCertificate: CheckRefused, OtherIdentity: CheckRefused, Caller: CallerAllowed},
	})
	want := "permissive: plaintext answered, the server sees the caller's identity; " +
		"strict: plaintext refused, TLS without a certificate refused, another identity refused, the caller's identity is an allowed one"
	if got != want {
		t.Errorf("%q: want %q", got, want)
	}
}
