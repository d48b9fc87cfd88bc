package embedded

import (
	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
)

// Components returns the names of the programs that an embedded cluster takes.
func Components() []string {
	return []string{component.Etcd, component.KubeAPIServer, component.KubeControllerManager, component.KubeScheduler, component.Kwok}
}

// Programs returns the programs of Components; paths has by name where each is.
func Programs(paths map[string]string) cluster.Programs {
	return cluster.Programs{
		Etcd:              paths[component.Etcd],
		APIServer:         paths[component.KubeAPIServer],
		ControllerManager: paths[component.KubeControllerManager],
		Scheduler:         paths[component.KubeScheduler],
		Kwok:              paths[component.Kwok],
	}
}
