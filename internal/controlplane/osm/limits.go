package osm

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

// limits returns the bounds that Open Service Mesh 1.2.4 holds itself to, given what is set in its environment
// (NAME=VALUE; of a name that comes several times the last counts):
//
//   - pkg/messaging/broker.go: the windows in which changes are collected, and the queue of events, with
//     client-go's DefaultControllerRateLimiter (util/workqueue/default_rate_limiters.go);
//   - pkg/workerpool: as many sidecars are pushed to at the same time as GOMAXPROCS says;
//   - client-go (rest/config.go: DefaultQPS, DefaultBurst), which osm-injector does not change: it creates a
//     Secret for each pod (pkg/injector/patch.go).
//
// A value that the programs could not read leaves the default here; they end with it.
func limits(env []string) *record.Limits {
	return &record.Limits{
		ConcurrentPushes:    &record.ByProcessors{PerProcessor: 1},
		InjectionsPerSecond: controlplane.NumberIn(env, "OSM_API_REQUESTS_PER_SECOND", 5),
		InjectionsBurst:     10,
		EventsPerSecond:     controlplane.NumberIn(env, "OSM_EVENTS_PER_SECOND", 10),
		EventsBurst:         100,
		DebounceSeconds:     controlplane.SecondsIn(env, "OSM_PROXY_UPDATE_WINDOW", 2),
		DebounceMaxSeconds:  controlplane.SecondsIn(env, "OSM_PROXY_UPDATE_MAX_WINDOW", 10),
	}
}
