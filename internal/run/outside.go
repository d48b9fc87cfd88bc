package run

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

const (
	outsideNamespace = "outside" // of pods without sidecars
	// outsideEach bounds the pods of a Deployment of pods without sidecars.
	outsideEach = 100
	// jobLength is the lifetime of a pod of the churn outside the mesh, as that of a short
	// CronJob.
	jobLength = 10 * time.Second
)

// checkProfile refuses parts of a mesh that a control plane has no objects and no
// expectations for.
func (s Spec) checkProfile(d controlplane.Driver) error {
	p := s.Profile()
	text := p.String()
	switch {
	case p.Gateways != nil && s.Mesh.Sidecars.Real > 0:
		return scenario.Refuse("mesh.parts.gateways", *p.Gateways, "none with mesh.sidecars.real, which are no gateways")
	case text == "" || d.Profiles:
		return nil
	default:
		return scenario.Refuse("mesh.profile", s.Mesh.Profile, "a plain mesh, without %s, with controlPlane.name %s, which has no objects and expectations for more", text, s.ControlPlane.Name)
	}
}

// outside makes the pods that are in the cluster and not in the mesh: some that stay, and some that come and go, as those of CronJobs.
type outside struct {
	client  kubernetes.Interface
	label   string        // of the run
	pods    int           // that are there all the time
	churn   scenario.Rate // of others, a second; 0 = none
	length  time.Duration // for which each of those is there
	grace   time.Duration // for which a pod runs on after it was deleted
	timeout time.Duration // for all to be Ready
	say     func(string)

	// set by replacePods
	made  int
	begin time.Time
}

func (r *run) outside() *outside {
	profile := r.mesh.Profile
	return &outside{
		client: r.api.Client, label: r.runLabel(), pods: topology.Value(profile.OutsidePods), churn: scenario.Rate(topology.Value(profile.OutsideChurn) / r.spec.dilation()),
		length: r.spec.slowed(jobLength), grace: r.gracePeriod(), timeout: time.Duration(r.spec.Phases.ConvergeTimeout), say: r.progress.say,
	}
}

// makePodsOutside creates the pods without sidecars.
func (r *run) makePodsOutside(ctx context.Context) error {
	return r.outside().makePods(ctx)
}

// startChurnOutside begins the churn outside the mesh. Undone, it reports
// whether the churn kept its rate.
func (r *run) startChurnOutside(ctx context.Context) (steps.Undo, error) {
	o := r.outside()
	if o.churn == 0 {
		return nil, nil
	}
	b := newBackground(ctx, r.fail)
	b.run("churn outside the mesh", o.replacePods)
	return func(context.Context) error {
		b.stop()
		if achieved := float64(o.made) / time.Since(o.begin).Seconds(); achieved < lateChurn*float64(o.churn) && o.made > 20 {
			r.journal.Warn(record.Warning{About: "controlPlane", Reason: record.ReasonSlowChurn, Values: map[string]float64{
				"achievedPerSecond": achieved, "offeredPerSecond": float64(o.churn),
			}})
		}
		return nil
	}, nil
}

// makePods creates the pods without sidecars, and returns when all are Ready. They are
// there before the mesh: what the control plane holds of them is in its baseline, too.
func (o *outside) makePods(ctx context.Context) error {
	if o.pods == 0 && o.churn == 0 {
		return nil
	}
	labels := map[string]string{kwok.RunLabel: o.label}
	err := workload.Persist(ctx, func(ctx context.Context, _ int) error {
		_, err := o.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: outsideNamespace, Labels: labels}}, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", outsideNamespace, err)
	}
	for i := 0; i*outsideEach < o.pods; i++ {
		if err := o.makeDeployment(ctx, i, min(outsideEach, o.pods-i*outsideEach)); err != nil {
			return err
		}
	}
	return o.await(ctx)
}

func (o *outside) makeDeployment(ctx context.Context, number, pods int) error {
	name := fmt.Sprintf("outside-%d", number)
	count, own := int32(pods), map[string]string{"app": name, kwok.OutsideLabel: "true"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: outsideNamespace, Labels: map[string]string{kwok.RunLabel: o.label, kwok.OutsideLabel: "true"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: own},
			Template: outsidePod(own, o.grace),
		},
	}
	return workload.Persist(ctx, func(ctx context.Context, _ int) error {
		_, err := o.client.AppsV1().Deployments(outsideNamespace).Create(ctx, deployment, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating deployment %s: %w", name, err)
		}
		return nil
	})
}

// outsidePod returns a pod on a fake node. It does not carry the run's label, so that it is Ready
// at once and no sidecar is made for it.
func outsidePod(labels map[string]string, grace time.Duration) corev1.PodTemplateSpec {
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "app", Image: "scaler.mesh/simulated"}},
			NodeSelector: kwok.NodeSelector(),
			Tolerations:  []corev1.Toleration{kwok.Toleration()},
		},
	}
	kwok.SetGracePeriod(&pod, grace)
	return pod
}

// gracePeriod returns the time for which pods run on after they were deleted.
func (r *run) gracePeriod() time.Duration {
	return r.spec.slowed(time.Duration(topology.Value(r.mesh.Profile.GracePeriod)))
}

// await returns once all pods are Ready.
func (o *outside) await(ctx context.Context) error {
	if o.pods == 0 {
		return nil
	}
	o.say(fmt.Sprintf("waiting for %d pods outside the mesh", o.pods))
	ready := 0
	err := wait.PollUntilContextTimeout(ctx, time.Second, o.timeout, false, func(ctx context.Context) (bool, error) {
		all, err := o.client.AppsV1().Deployments(outsideNamespace).List(ctx, metav1.ListOptions{LabelSelector: kwok.OutsideLabel})
		if err != nil {
			return false, nil //nolint:nilerr // the API server may be away for a moment
		}
		ready = 0
		for _, d := range all.Items {
			ready += int(d.Status.ReadyReplicas)
		}
		return ready >= o.pods, nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("waiting for %d pods outside the mesh: %d are ready after %s", o.pods, ready, o.timeout)
	}
	return nil
}

// replacePods creates a pod each time one is due, and deletes it after its length, until ctx ends.
// The schedule does not wait for what became of the pods before.
func (o *outside) replacePods(ctx context.Context) error {
	requests, during := errgroup.WithContext(ctx)
	requests.SetLimit(deleting)
	pods := o.client.CoreV1().Pods(outsideNamespace)
	there := int(math.Ceil(o.length.Seconds() * float64(o.churn)))
	o.begin = time.Now()
	for n := 0; ; n++ {
		if err := task.WaitUntil(during, o.begin.Add(o.churn.Due(n))); err != nil {
			break
		}
		requests.Go(func() error {
			of := outsidePod(map[string]string{kwok.OutsideLabel: "true"}, o.grace)
			pod := &corev1.Pod{ObjectMeta: of.ObjectMeta, Spec: of.Spec}
			pod.Name = jobName(n)
			return workload.Persist(during, func(ctx context.Context, _ int) error {
				_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
				if apierrors.IsAlreadyExists(err) {
					return nil
				}
				return err
			})
		})
		if old := n - there; old >= 0 {
			requests.Go(func() error {
				return workload.Persist(during, func(ctx context.Context, _ int) error {
					err := pods.Delete(ctx, jobName(old), metav1.DeleteOptions{})
					if apierrors.IsNotFound(err) {
						return nil
					}
					return err
				})
			})
		}
		o.made = n + 1
	}
	if err := requests.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("creating and deleting pods outside the mesh: %w", err)
	}
	return nil
}

func jobName(n int) string { return fmt.Sprintf("job-%d", n) }
