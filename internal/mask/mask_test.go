package mask

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestValue(t *testing.T) {
	for _, test := range []struct {
		name, value string
		secret      bool
	}{
		{"API_TOKEN", "s3cret", true},
		{"db-password", "x", true},
		{"SIGNING_KEY", "abc", true},
		{"accessToken", "abc", true},
		{"OTHER", "-----BEGIN EC PRIVATE KEY-----\nMHc", true},
		{"OTHER", "eyJhbGciOiJSUzI1NiJ9.e30.x", true},
		{"OTHER", "postgres://me:hunter2@db/x", true},
		{"OTHER", "https://s3cret@host/x", true},
		{"OTHER", "me:hunter2@tcp(db:3306)/x", true},
		{"DSN", "user=a password=hunter2 host=db", true},
		{"DSN", "host=db; Pwd = hunter2", true},
		{"URL", "https://host/x?a=b&access_token=hunter2", true},
		{"CONFIG", `{"level": 1, "clientSecret": "hunter2"}`, true},
		{"OTHER", "run --vendor-token hunter2", true},
		{"OTHER", "me:p/w@tcp(db)/x", true},
		{"STORE", "AccountName=a;AccountKey=hunter2==;Suffix=b", true},
		{"OTHER", "aws_secret_access_key=hunter2", true},
		{"CONFIG", "level: 1\npassword: hunter2", true},
		{"CONFIG", "secret:\n  secretName: vendor", false},
		{"CONFIG", `"{\"password\":\"hunter2\"}"`, true},
		{"OTHER", "X-Api-Key: hunter2", true},
		{"HEADER", "Authorization: Basic aHVudGVyMg", true},
		{"ACCOUNT_TOKEN", "1234567890123", true},
		{"IMAGE", "registry:5000/istio/proxyv2:1.31.0@sha256:0123", false},
		{"FORMAT", "%START_TIME% token=%REQ(X-TOKEN)% secret=$(NAME)", false},
		{"RULE", "request.token == 'x' && retries-of-token=5", false},
		{"AT", "10:30@zone", true}, // as it could be a user and a password
		{"MAIL", "me@example.org", false},
		{"PILOT_JWT_PUB_KEY_REFRESH_INTERVAL", "20m", false},
		{"TOKEN_RETRIES", "5", false},
		{"PILOT_ENABLE_TOKEN", "true", false},
		{"API_TOKEN", "", false},
		{"PILOT_DEBOUNCE_AFTER", "100ms", false},
		{"MONKEY", "george", false},
		{"autoInject", "enabled", false},
		{"URL", "https://example.org:8080/x", false},
	} {
		got := Value(test.name, test.value)
		if want := test.value; test.secret != (got == Masked) || !test.secret && got != want {
			t.Errorf("%s=%s became %q, want it masked: %t", test.name, test.value, got, test.secret)
		}
	}
}

func TestTree(t *testing.T) {
	var value any
	text := `
tracing: {lightstep: {address: "tracer:80", accessToken: abc}}
extensionProviders:
- name: otel
  opentelemetry:
    service: otel.observability
    http: {headers: [{name: x-api-key, value: abc}, {name: x-team, value: blue}]}
- name: ext
  envoyExtAuthzHttp: {includeAdditionalHeadersInCheck: {authorization: "Basic abc", x-team: blue}}
certificates: ["-----BEGIN CERTIFICATE-----"]
controlPlaneAuthPolicy: MUTUAL_TLS
sds: {token: {aud: istio-ca}}
discoverySelectors: [{matchExpressions: [{key: team, operator: NotIn, values: [sandbox]}]}]
`
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	n := Tree(value)
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	want := `certificates:
- (masked)
controlPlaneAuthPolicy: MUTUAL_TLS
discoverySelectors:
- matchExpressions:
  - key: team
    operator: NotIn
    values:
    - sandbox
extensionProviders:
- name: otel
  opentelemetry:
    http:
      headers:
      - name: x-api-key
        value: (masked)
      - name: x-team
        value: blue
    service: otel.observability
- envoyExtAuthzHttp:
    includeAdditionalHeadersInCheck:
      authorization: (masked)
      x-team: blue
  name: ext
sds:
  token:
    aud: istio-ca
tracing:
  lightstep:
    accessToken: (masked)
    address: tracer:80
`
	if diff := cmp.Diff(want, string(out)); diff != "" || n != 4 {
		t.Errorf("%d were masked, want 4:\n%s", n, diff)
	}
}

func TestTemplate(t *testing.T) {
	text := `spec:
  containers:
  - name: istio-proxy
    env:
    - name: VENDOR_API_KEY
      value: "abc"
    - name: VENDOR_TOKEN
      value: {{ .Values.global.token }}
    - name: TEAM
      value: blue
    args: ["--collector", "https://me:pass@host/"]
    header: Bearer abc
`
	want := `spec:
  containers:
  - name: istio-proxy
    env:
    - name: VENDOR_API_KEY
      value: "(masked)"
    - name: VENDOR_TOKEN
      value: {{ .Values.global.token }}
    - name: TEAM
      value: blue
    args: "(masked)"
    header: "(masked)"
`
	got, n := Template(text)
	if diff := cmp.Diff(want, got); diff != "" || n != 3 {
		t.Errorf("%d were masked, want 3:\n%s", n, diff)
	}
}

// A setting is masked by its path, and by the names in its value where that is a map or a list.
func TestSetting(t *testing.T) {
	for setting, want := range map[string]string{
		"meshConfig.accessLogFile=/dev/stdout":                                      "meshConfig.accessLogFile=/dev/stdout",
		"meshConfig.defaultConfig.proxyMetadata.API_TOKEN=abc123":                   "meshConfig.defaultConfig.proxyMetadata.API_TOKEN=(masked)",
		"meshConfig.x=[{name: o, headers: [{name: Authorization, value: abc123}]}]": `meshConfig.x=[{"headers":[{"name":"Authorization","value":"(masked)"}],"name":"o"}]`,
		"values.global.x={password: abc123, level: 3}":                              `values.global.x={"level":3,"password":"(masked)"}`,
		"values.x=[abc123": "values.x=(masked)",
		"PATH":             "PATH",
	} {
		if got := Setting(setting); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	all := []string{"a.token=secret-value"}
	if got := Settings(all); got[0] != "a.token=(masked)" || all[0] != "a.token=secret-value" {
		t.Errorf("got %q of %q", got, all)
	}
}

func TestArgs(t *testing.T) {
	got, n := Args([]string{
		"discovery", "--vendor-token", "hunter2", "--apikey=hunter3", "https://u:hunter4@x/y", "--log", "info", "--auth-retries", "5",
		"--token", "--domain", "cluster.local", "--dsn", "password=hunter5", "-c", "--url=https://u:hunter6@x", "-token=hunter7", "--secret", "a=hunter8",
		"-----BEGIN EC PRIVATE KEY-----\nhunter9==\n-----END EC PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----\nhunter10",
	})
	want := []string{
		"discovery", "--vendor-token", Masked, "--apikey=" + Masked, Masked, "--log", "info", "--auth-retries", "5",
		"--token", "--domain", "cluster.local", "--dsn", Masked, "-c", "--url=" + Masked, "-token=" + Masked, "--secret", Masked,
		Masked, Masked,
	}
	if diff := cmp.Diff(want, got); diff != "" || n != 9 {
		t.Errorf("%d were masked, want 9:\n%s", n, diff)
	}
}
