package run

import (
	"fmt"
	"time"
)

// Status is a run at one moment, for showing progress.
type Status struct {
	Phase       string        // as in the record; "" before the first
	Elapsed     time.Duration // since the phase began
	Length      time.Duration // of a phase of fixed length, else 0
	Pods        int           // wanted
	Created     int           // pods seen
	Ready       int           // pods Ready
	Connected   int           // pods whose proxy, a sidecar or that of their node, was ever connected
	Complete    int           // pods whose proxy holds what was expected at its first request
	Converged   int           // pods whose proxy holds all that is expected now
	NodeProxy   string        // what the proxy of a node is called, as in ztunnel; "" = nodes have none
	Nodes       int           // proxies of nodes that were ever connected
	Cores       float64       // the control plane's, over the last second
	MemoryBytes float64       // the control plane's resident memory
}

// String describes how far the run is.
func (s Status) String() string {
	return fmt.Sprintf("in %s, with %d of %d pods created, %d connected and %d complete", s.Phase, s.Created, s.Pods, s.Connected, s.Complete)
}

// Progress receives how an experiment gets on. The zero value shows nothing.
type Progress struct {
	Say    func(msg string) // one line, about a step or an event
	Status func(Status)     // about once a second during phases
}

func (p Progress) say(msg string) {
	if p.Say != nil {
		p.Say(msg)
	}
}
