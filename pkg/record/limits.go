package record

// Limits are the rates and bounds that a control plane is known, by its program
// and its settings, to hold itself to: rules of its version, not measurements. They
// are each replica's. What is absent is not known to be limited.
//
// A plan needs them because they grow with the processors of the machine that is
// planned for, not with those of the machine that was measured on.
type Limits struct {
	StreamsPerSecond       *ByProcessors `json:"streamsPerSecond,omitempty"`       // new streams that it admits
	StreamWaitSeconds      float64       `json:"streamWaitSeconds,omitempty"`      // a stream that would wait longer for that is refused at once; 0 = none is
	ConcurrentPushes       *ByProcessors `json:"concurrentPushes,omitempty"`       // sidecars that it pushes to at the same time
	TokenReviewsPerSecond  float64       `json:"tokenReviewsPerSecond,omitempty"`  // tokens that it has the API server review, after a burst; 0 = not limited
	TokenReviewsBurst      float64       `json:"tokenReviewsBurst,omitempty"`      // that it may have reviewed at once
	TokenReviewsPerSidecar float64       `json:"tokenReviewsPerSidecar,omitempty"` // that a sidecar's certificate and stream take
	InjectionsPerSecond    float64       `json:"injectionsPerSecond,omitempty"`    // pods that its webhook admits with a proxy, after a burst; 0 = not limited
	InjectionsBurst        float64       `json:"injectionsBurst,omitempty"`        // that it may admit at once
	EventsPerSecond        float64       `json:"eventsPerSecond,omitempty"`        // events of Kubernetes that it works on, after a burst; 0 = not limited
	EventsBurst            float64       `json:"eventsBurst,omitempty"`            // that it may work on at once
	DebounceSeconds        float64       `json:"debounceSeconds,omitempty"`        // without a change before it pushes the last ones
	DebounceMaxSeconds     float64       `json:"debounceMaxSeconds,omitempty"`     // after the first change it pushes at the latest
	LargeResponseBytes     float64       `json:"largeResponseBytes,omitempty"`     // a larger response takes a buffer of 1 MiB while it is sent; 0 = it does not, or that is not known
}

// ByProcessors is a bound of a program that grows with the processors it is given:
// min(Base + PerProcessor x GOMAXPROCS, Max).
type ByProcessors struct {
	Base         float64 `json:"base"`
	PerProcessor float64 `json:"perProcessor"`
	Max          float64 `json:"max,omitempty"` // 0 = none
}

// At returns the bound for so many processors; 0 for a nil rule.
func (b *ByProcessors) At(processors int) float64 {
	if b == nil {
		return 0
	}
	bound := b.Base + b.PerProcessor*float64(processors)
	if b.Max > 0 {
		bound = min(bound, b.Max)
	}
	return bound
}
