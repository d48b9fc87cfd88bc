package istio

import (
	"maps"
	"os"
	"testing"
)

// The page is an excerpt of what istiod 1.29.1 writes: flags of its commands, variables and metrics, of which variables count.
func TestVariablesOf(t *testing.T) {
	page, err := os.ReadFile("testdata/pilot-discovery.html")
	if err != nil {
		t.Fatal(err)
	}
	got := variablesOf(string(page))
	want := map[string]string{
		"GCP_METADATA": "", "HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED": "true", "PILOT_DEBOUNCE_AFTER": "100ms",
		"PILOT_JWT_ENABLE_REMOTE_JWKS": "false", "TOKEN_AUDIENCES": "istio-ca",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
