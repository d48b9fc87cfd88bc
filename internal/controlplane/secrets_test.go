package controlplane

import "testing"

func TestSecretsAreMasked(t *testing.T) {
	for _, test := range []struct {
		name, value string
		secret      bool
	}{
		{"API_TOKEN", "s3cret", true},
		{"db-password", "x", true},
		{"SIGNING_KEY", "abc", true},
		{"OTHER", "-----BEGIN EC PRIVATE KEY-----\nMHc", true},
		{"OTHER", "eyJhbGciOiJSUzI1NiJ9.e30.x", true},
		{"OTHER", "postgres://me:hunter2@db/x", true},
		{"ACCOUNT_TOKEN", "1234567890123", true},
		{"PILOT_JWT_PUB_KEY_REFRESH_INTERVAL", "20m", false},
		{"TOKEN_RETRIES", "5", false},
		{"PILOT_ENABLE_TOKEN", "true", false},
		{"API_TOKEN", "", false},
		{"PILOT_DEBOUNCE_AFTER", "100ms", false},
		{"MONKEY", "george", false},
		{"URL", "https://example.org:8080/x", false},
	} {
		got := mask(test.name, test.value)
		if want := test.value; test.secret != (got == Masked) || !test.secret && got != want {
			t.Errorf("%s=%s became %q, want it masked: %t", test.name, test.value, got, test.secret)
		}
	}
	settings := Resources{Env: []string{"API_TOKEN=s3cret", "PILOT_X=1"}}.Settings(map[string]string{})
	if settings["API_TOKEN"] != Masked || settings["PILOT_X"] != "1" {
		t.Errorf("the record has %v", settings)
	}
}
