package cluster

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// Setting is one setting of a component that differs from the stock one: from the
// program's default, or from what kubeadm sets.
type Setting struct {
	Component string
	Name      string // of the flag or the field of a configuration file
	Value     string
	Stock     string
	Reason    string // why it differs
	Effect    string // on the figures
}

// arg is one argument of a program.
type arg struct {
	name, value string
	// setting describes how the argument differs from stock; nil for arguments that only
	// connect the programs: addresses, ports, files, and rights.
	setting *Setting
}

// wire returns an argument that connects programs.
func wire(name string, value any) arg { return arg{name: name, value: fmt.Sprint(value)} }

// differs returns an argument that differs from stock.
func differs(name string, value any, stock, reason, effect string) arg {
	text := fmt.Sprint(value)
	return arg{name, text, &Setting{Name: name, Value: text, Stock: stock, Reason: reason, Effect: effect}}
}

// environment returns the environment of a program: these variables, PATH and HOME.
func environment(args []arg) []string {
	all := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for _, a := range args {
		all = append(all, a.name+"="+a.value)
	}
	return all
}

// commandLine returns the arguments of a program.
func commandLine(args []arg) []string {
	var all []string
	for _, a := range args {
		all = append(all, "--"+a.name+"="+a.value)
	}
	return all
}

// notes describe each component of an embedded cluster in a sentence.
var notes = map[string]string{
	Etcd:              "one member, on this machine's disk, without waiting for it",
	APIServer:         "one replica, without limits on requests",
	ControllerManager: "one replica, with the controllers that a mesh needs and without client-side rate limits",
	Scheduler:         "one replica, without client-side rate limits",
	Kwok:              "plays the kubelets of fake nodes: pods have addresses and states, and no containers",
}

// Note describes a component of an embedded cluster in a sentence; "" for any other name.
func Note(component string) string { return notes[component] }

// kwokOptions describes the options of KWOK's configuration file that package kwok sets.
var kwokOptions = map[string]Setting{
	"podPlayStageParallelism": {
		Stock:  "4",
		Reason: "Thousands of pods change state at once; on a real cluster each node's kubelet works for its own.",
		Effect: "Pods run and become ready sooner after their sidecar, and status updates reach the API server at a higher rate.",
	},
	"nodePlayStageParallelism": {
		Stock:  "4",
		Reason: "All fake nodes are created together.",
		Effect: "None in a phase: nodes exist before the baseline.",
	},
	"nodeLeaseDurationSeconds": {
		Stock:  "40",
		Reason: "The heartbeat of the nodes is enough, and writes less.",
		Effect: "API server and etcd have no lease updates of nodes; on a real cluster each node has one every 10 s.",
	},
}

// settings returns all settings of a cluster with this layout and configuration of KWOK that differ
// from stock, in the order of the components. They are read from the command lines and
// the configuration file that its programs get.
func (l layout) settings(kwokConfig []byte) ([]Setting, error) {
	var all []Setting
	for _, c := range l.components(Programs{}) {
		for _, a := range append(slices.Clone(c.args), c.environment...) {
			if a.setting != nil {
				s := *a.setting
				s.Component = c.name
				all = append(all, s)
			}
		}
		for _, o := range c.objects {
			s := o.setting
			s.Component = c.name
			all = append(all, s)
		}
	}
	options, err := kwokSettings(kwokConfig)
	return append(all, options...), err
}

// kwokSettings returns the options in a configuration file of KWOK.
func kwokSettings(config []byte) ([]Setting, error) {
	var file struct {
		Options map[string]any `json:"options"`
	}
	first, _, _ := bytes.Cut(config, []byte("\n---"))
	if err := yaml.Unmarshal(first, &file); err != nil {
		return nil, fmt.Errorf("reading kwok's configuration: %w", err)
	}
	var all []Setting
	for _, name := range slices.Sorted(maps.Keys(file.Options)) {
		if name == "manageAllNodes" || name == "manageNodesWithAnnotationSelector" {
			continue // which nodes it plays
		}
		s := kwokOptions[name]
		s.Component, s.Name, s.Value = Kwok, name, fmt.Sprint(file.Options[name])
		all = append(all, s)
	}
	return all, nil
}
