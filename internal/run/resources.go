package run

import (
	"regexp"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// variable matches the name of an environment variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// processors returns the number of processors of the machine that each replica of the control plane is modelled
// on: what the scenario states, else [scenario.DefaultProcessors] where time can be slowed down, and those of this
// machine where it cannot. 0 = scaler does not start the control plane, and does not know.
func (s Spec) processors() int {
	driver, err := s.Driver()
	switch {
	case err != nil || s.Existing != nil || driver.External != nil:
		return 0
	case s.ControlPlane.Processors > 0:
		return s.ControlPlane.Processors
	case s.inRealTime(driver) == nil:
		return scenario.DefaultProcessors
	}
	return len(linux.Processors())
}

// checkResources checks what the control plane is given, and its environment.
func (s Spec) checkResources(d controlplane.Driver) error {
	here := len(linux.Processors())
	if n := s.ControlPlane.Processors; n > 0 && n != here {
		if why := s.inRealTime(d); why != nil {
			return scenario.Refuse("controlPlane.processors", n, "%d, which this machine has: time is not slowed down with %s", here, why.what)
		}
	}
	if err := s.checkSettings(d); err != nil {
		return err
	}
	return checkEnv("controlPlane.env", s.ControlPlane.Env)
}

// checkSettings checks the settings of the control plane's configuration. A value may be a secret: errors do not have it.
func (s Spec) checkSettings(d controlplane.Driver) error {
	const path = "controlPlane.set"
	for _, setting := range s.ControlPlane.Set {
		if d.CheckSetting == nil {
			return scenario.Refuse(path, mask.Setting(setting), "none with controlPlane.name %s, which has no configuration of this form", s.ControlPlane.Name)
		}
		if err := d.CheckSetting(setting); err != nil {
			return scenario.Refuse(path, mask.Setting(setting), "%v", err)
		}
	}
	return nil
}

// machineProcessors returns a warning about a control plane whose number of processors is that of the machine that it happens to
// run on; nil where the scenario decides it.
func (s Spec) machineProcessors(d controlplane.Driver) *record.Warning {
	why := s.inRealTime(d)
	n := s.processors()
	if why == nil || s.ControlPlane.Processors > 0 || n == scenario.DefaultProcessors {
		return nil
	}
	w := &record.Warning{About: "environment.controlPlane.gomaxprocs", Reason: record.ReasonMachineProcessors, Component: d.Name, Detail: why.what}
	if n > 0 {
		w.Values = map[string]float64{"processors": float64(n)}
	}
	return w
}

// quotaPeriod is the time over which the kernel holds a control plane to its processors, in the modelled time. Within it, the control plane
// may use more, as this machine has them, and stands still for the rest. The 100 ms of a container of Kubernetes are as long as istiod
// waits for further changes, so that it pushed once more after each such rest (docs/results/ladder.md).
const quotaPeriod = 10 * time.Millisecond

// quota holds a replica of the control plane to its processors where this machine, slowed down, would give it more; zero where
// it cannot. These are reference processors, of which one of this machine is a share, its speed: what a control plane does at its limit
// would else depend on the machine. A speed of 0 is not known. Where time is slowed down, the quota may be all of the machine: it changes with the
// speed while the run goes on.
func (s Spec) quota(speed float64) controlplane.Quota {
	quota, here := s.share(speed), float64(len(linux.Processors()))
	if quota.Processors == 0 || s.dilation() == 1 && quota.Processors == here {
		return controlplane.Quota{}
	}
	return quota
}

// share returns the quota at a speed, all of this machine at most.
func (s Spec) share(speed float64) controlplane.Quota {
	if driver, err := s.Driver(); speed <= 0 || err != nil || s.inRealTime(driver) != nil { // then they are processors of this machine
		speed = 1
	}
	share := float64(s.processors()) / s.dilation() / speed
	return controlplane.Quota{Processors: min(share, float64(len(linux.Processors()))), Period: s.slowed(quotaPeriod)}
}

// usable returns how many processors of this machine, in the modelled time, a replica with a quota and its GOMAXPROCS can use; 0 = as many as
// its GOMAXPROCS, or not known. Without a quota they are all of the machine's, which may be more than GOMAXPROCS where they are slow.
func (s Spec) usable(quota controlplane.Quota) float64 {
	n := float64(s.processors())
	if quota.Processors > 0 {
		return s.dilation() * min(quota.Processors, n)
	}
	if all := s.dilation() * min(float64(len(linux.Processors())), n); all > n {
		return all
	}
	return 0
}

// controlPlaneResources decides what each replica of the control plane is given, on a machine of this speed (see quota). Limits that the
// kernel cannot enforce are warnings about the run.
func (s Spec) controlPlaneResources(group *process.Group, speed float64) (resources controlplane.Resources, warnings []record.Warning) {
	resources = controlplane.Resources{
		MaxProcs:    s.processors(),
		MemoryBytes: int64(s.ControlPlane.Memory),
		Env:         s.ControlPlane.Env,
	}
	if quota := s.quota(speed); quota.Processors > 0 {
		if err := group.CanLimitProcessors(quota); err == nil {
			resources.Quota = quota
		} else if quota.Processors < float64(len(linux.Processors())) {
			warnings = append(warnings, record.Warning{
				About: "environment.controlPlane.gomaxprocs", Reason: record.ReasonProcessorsNotEnforced, Values: map[string]float64{"processors": float64(resources.MaxProcs)}, Detail: err.Error(),
			})
		}
	}
	if resources.MemoryBytes > 0 {
		err := controlplane.CanLimitMemory()
		resources.Enforced = err == nil
		if err != nil {
			warnings = append(warnings, record.Warning{About: "environment.controlPlane.memoryLimitBytes", Reason: record.ReasonLimitNotEnforced, Detail: err.Error()})
		}
	}
	return resources, warnings
}
