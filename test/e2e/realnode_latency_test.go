//go:build e2e

package e2e

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

// latencyRun reads what `scaler latency -o json` has printed, of which all requests were answered.
func latencyRun(text []byte) record.LatencyRun {
	GinkgoHelper()
	var run record.LatencyRun
	Expect(json.Unmarshal(text, &run)).To(Succeed())
	Expect(run.Status).To(Equal(record.StatusCompleted))
	for _, row := range run.Rows {
		Expect(row).To(And(HaveField("Errors", BeZero()), HaveField("NotSent", BeZero())), "%s: %v", row.Variant, row.ErrorKinds)
		// Answers that come after a round's window do not count in it: how near this is to 100 depends on the machine.
		Expect(row.AchievedRPS).To(BeNumerically("~", 100, 50))
		Expect(row.Latency.Count).To(BeEquivalentTo(row.Requests), "all were answered")
		Expect(row.Latency.P50).To(HaveValue(BeNumerically(">", 0)))
	}
	return run
}

// expectPairs checks a client and a server, without sidecars and with those of the cluster.
func expectPairs(text []byte) {
	GinkgoHelper()
	run := latencyRun(text)
	Expect(known(run.Cluster).Context).To(Equal("realnode"))
	Expect(known(run.Cluster).Nodes).To(HaveExactElements(And(HaveField("Name", "realnode"), HaveField("CPUs", BeNumerically(">=", 1)), HaveField("Runtime", HavePrefix("containerd://")))))
	Expect(run.Environment.ControlPlane).To(And(HaveField("Name", "istiod"), HaveField("Replicas", 2)))
	Expect(run.Checks).To(HaveExactElements(
		record.LatencyCheck{Variant: "permissive", Placement: "one-node", Plaintext: record.CheckAnswered, Caller: record.CallerSeen},
		record.LatencyCheck{Variant: "strict", Placement: "one-node", Plaintext: record.CheckRefused, Caller: record.CallerSeen},
	))
	Expect(run.Rows).To(HaveExactElements(HaveField("Variant", "none"), HaveField("Variant", "permissive"), HaveField("Variant", "strict")))
	Expect(run.Rows).To(HaveEach(HaveField("Placement", "one-node")))
	Expect(run.Rows[0].Sidecars).To(BeNil())
	for _, row := range run.Rows {
		Expect(row.Requests).To(BeEquivalentTo(800))
		Expect(row.Repeats).To(HaveLen(2))
	}
	for _, row := range run.Rows[1:] {
		Expect(known(known(row.Added).P50).Interval).NotTo(BeNil())
		Expect(known(row.Sidecars).Workers).To(BeNumerically(">=", 1))
		Expect(known(row.Sidecars).Tiers).To(HaveExactElements(HaveField("Tier", "client"), HaveField("Tier", "server")))
		for _, tier := range known(row.Sidecars).Tiers {
			Expect(tier.Count).To(Equal(1))
			Expect(tier.Cores).To(BeNumerically(">", 0.001))
			Expect(tier.MemoryBytes).To(BeNumerically(">", 50e6), "an Envoy and an agent")
		}
	}
	Expect(run.Instrument.Cores).To(HaveValue(BeNumerically(">", 0)))
}

// expectChain checks two tiers of two servers, which wait.
func expectChain(text []byte) {
	GinkgoHelper()
	run := latencyRun(text)
	Expect(run.Checks).To(HaveExactElements(record.LatencyCheck{Variant: "strict", Placement: "one-node", Plaintext: record.CheckRefused, Caller: record.CallerSeen}))
	Expect(run.Rows).To(HaveLen(1))
	Expect(run.Rows[0].Requests).To(BeEquivalentTo(200))
	Expect(run.Rows[0].Latency.P50).To(HaveValue(BeNumerically(">", 0.010)))
	Expect(known(run.Rows[0].Sidecars).Tiers).To(HaveExactElements(
		And(HaveField("Tier", "client"), HaveField("Count", 1)), And(HaveField("Tier", "hop1"), HaveField("Count", 2)), And(HaveField("Tier", "hop2"), HaveField("Count", 2)),
	))
}

// expectTwoNodes checks a client and servers on its own node and on another one.
func expectTwoNodes(text []byte) {
	GinkgoHelper()
	run := latencyRun(text)
	Expect(known(run.Cluster).Nodes).To(HaveExactElements(HaveField("Name", "realnode"), HaveField("Name", "realnode-2")))
	var rows, checks []string
	for _, row := range run.Rows {
		rows = append(rows, row.Placement+" "+row.Variant)
		if row.Variant != "none" {
			Expect(known(row.Added).P50).NotTo(BeNil())
			Expect(known(row.Sidecars).Tiers).To(HaveEach(HaveField("Cores", BeNumerically(">", 0))))
		}
	}
	Expect(rows).To(ConsistOf("one-node none", "one-node permissive", "one-node strict", "two-nodes none", "two-nodes permissive", "two-nodes strict"))
	for _, check := range run.Checks {
		Expect(check.Caller).To(Equal(record.CallerSeen))
		checks = append(checks, check.Placement+" "+check.Variant+" "+string(check.Plaintext))
	}
	Expect(checks).To(ConsistOf(
		"one-node permissive "+string(record.CheckAnswered), "two-nodes permissive "+string(record.CheckAnswered),
		"one-node strict "+string(record.CheckRefused), "two-nodes strict "+string(record.CheckRefused),
	))
}
