package component

import (
	"strconv"
	"strings"
	"time"
)

// Time is a time or rate of a program that was built here, which the program reads from an environment
// variable. The value that its project chose is used where the variable is not set.
type Time struct {
	Variable  string
	Length    time.Duration // the project's value; 0 = it is a rate
	PerSecond float64       // the project's value; 0 = it is a length
	Most      time.Duration // the longest that works; 0 = any
	What      string        // a description
}

// Slowed gives the setting NAME=VALUE with which it takes k times as long as in an environment (NAME=VALUE; of
// a name that comes several times the last counts). A value there that the program cannot read stays as it
// is: the program ends with it.
func (t Time) Slowed(env []string, k float64) string {
	text := t.value(env)
	if t.Length == 0 {
		rate := t.PerSecond
		if text != "" {
			var err error
			if rate, err = strconv.ParseFloat(text, 64); err != nil {
				return t.Variable + "=" + text
			}
		}
		return t.Variable + "=" + strconv.FormatFloat(rate/k, 'g', -1, 64)
	}
	length := t.Length
	if text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			return t.Variable + "=" + text
		}
	}
	length = time.Duration(float64(length) * k)
	if t.Most > 0 {
		length = min(length, t.Most)
	}
	return t.Variable + "=" + length.String()
}

// value gives the value of its variable; "" = it is not set.
func (t Time) value(env []string) (last string) {
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); name == t.Variable {
			last = value
		}
	}
	return last
}

// clientGoModulePath is the Go module of the client library of Kubernetes.
const clientGoModulePath = "k8s.io/client-go"

// workqueueLimiter is DefaultControllerRateLimiter of the client library, in each version that is pinned.
const workqueueLimiter = `
	return NewMaxOfRateLimiter(
		NewItemExponentialFailureRateLimiter(5*time.Millisecond, 1000*time.Second),
		// 10 qps, 100 bucket size.  This is only for retry speed and its only the overall factor (not per item)
		&BucketRateLimiter{Limiter: rate.NewLimiter(rate.Limit(10), 100)},
	)
`

// clientRequests lets a variable set how many requests a client makes per second where its program does not say
// so. It stays the limit of a client of one API group: Config.QPS would be that of all groups of a client
// together. Needs clientRequestsRead.
func clientRequests(variable string) edit {
	return edit{clientGoModulePath, "rest/config.go", "const (\n\tDefaultQPS   float32 = 5.0\n\tDefaultBurst int     = 10\n)",
		"var DefaultQPS = requestsPerSecond(\"" + variable + "\", 5.0)\n\nconst DefaultBurst int = 10"}
}

var clientRequestsRead = edit{clientGoModulePath, "rest/requests.go", "", `package rest

import (
	"os"
	"strconv"
)

// requestsPerSecond is a rate that the environment may set.
func requestsPerSecond(name string, usual float32) float32 {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	rate, err := strconv.ParseFloat(text, 32)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return float32(rate)
}
`}
