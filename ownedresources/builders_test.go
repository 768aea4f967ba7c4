package ownedresources

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// built builds one child with each builder, and edits the child as an operator would. If changed is true, the children
// have other content, and some of them lack fields that they had before, so the apply has to remove these fields.
type built struct {
	changed bool
}

func (b built) container() corev1.Container {
	c := corev1.Container{Name: "web", Image: "nginx:1.27", Ports: ContainerPorts(b.ports()...)}
	if b.changed {
		c.Image, c.Env = "nginx:1.28", []corev1.EnvVar{{Name: "MODE", Value: "sale"}}
	}
	return c
}

func (b built) ports() []corev1.ServicePort {
	ports := []corev1.ServicePort{{Name: "http", Port: 8080}}
	if b.changed {
		ports = append(ports, corev1.ServicePort{Name: "metrics", Port: 9090})
	}
	return ports
}

func (b built) deployment(owner *Shop) *appsv1.Deployment {
	return NewDeployment(owner, nil, b.container())
}

func (b built) statefulSet(owner *Shop) *appsv1.StatefulSet {
	s := NewStatefulSet(owner, map[string]string{"app": "db"}, b.container())
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}}
	if b.changed {
		s.Spec.Replicas = new(int32(3))
	}
	return s
}

func (b built) daemonSet(owner *Shop) *appsv1.DaemonSet {
	return NewDaemonSet(owner, map[string]string{"app": "agent"}, b.container())
}

// job has the same pod template when changed is true, because a Job's pod template is immutable.
func (b built) job(owner *Shop) *batchv1.Job {
	j := NewJob(owner, built{}.container())
	if b.changed {
		j.Spec.TTLSecondsAfterFinished = new(int32(60))
	}
	return j
}

func (b built) cronJob(owner *Shop) *batchv1.CronJob {
	j := NewCronJob(owner, "0 3 * * *", b.container())
	if b.changed {
		j.Spec.TimeZone = new("Etc/UTC")
	}
	return j
}

func (b built) configMap(owner *Shop) *corev1.ConfigMap {
	data := map[string]string{"mode": "normal", "theme": "dark"}
	if b.changed {
		data = map[string]string{"mode": "sale"}
	}
	return NewConfigMap(owner, data)
}

func (b built) secret(owner *Shop) *corev1.Secret {
	data := map[string][]byte{"user": []byte("web")}
	if b.changed {
		data = map[string][]byte{"password": []byte("x")}
	}
	return NewSecret(owner, data)
}

func (b built) service(owner *Shop) *corev1.Service {
	return NewService(owner, nil, b.ports()...)
}

func (b built) disruptionBudget(owner *Shop) *policyv1.PodDisruptionBudget {
	p := NewPodDisruptionBudget(owner, nil)
	if b.changed {
		p.Spec.MaxUnavailable, p.Spec.MinAvailable = nil, new(intstr.FromString("50%"))
	}
	return p
}

func (b built) autoscaler(owner *Shop) *autoscalingv2.HorizontalPodAutoscaler {
	if !b.changed {
		return NewHorizontalPodAutoscaler(owner, b.deployment(owner), 5)
	}
	return NewHorizontalPodAutoscaler(owner, b.deployment(owner), 8, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceMemory,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("0.5Gi"))},
		},
	})
}

func (b built) ingress(owner *Shop) *networkingv1.Ingress {
	hosts := []string{"shop.example.com"}
	if b.changed {
		hosts = nil
	}
	return NewIngress(owner, networkingv1.IngressServiceBackend{Port: networkingv1.ServiceBackendPort{Name: "http"}}, hosts...)
}

func (b built) networkPolicy(owner *Shop) *networkingv1.NetworkPolicy {
	if b.changed {
		return NewNetworkPolicy(owner, nil)
	}
	p := NewNetworkPolicy(owner, nil, networkingv1.NetworkPolicyIngressRule{
		Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("http"))}},
	})
	p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	return p
}

func (b built) children() *ChildSet[*Shop] {
	return Ensure(
		Build(b.deployment), Build(b.statefulSet), Build(b.daemonSet), Build(b.job), Build(b.cronJob), Build(b.configMap), Build(b.secret),
		Build(b.service), Build(b.disruptionBudget), Build(b.autoscaler), Build(b.ingress), Build(b.networkPolicy),
	)
}

func (b built) objects(owner *Shop) []client.Object {
	return []client.Object{
		b.deployment(owner), b.statefulSet(owner), b.daemonSet(owner), b.job(owner), b.cronJob(owner), b.configMap(owner), b.secret(owner),
		b.service(owner), b.disruptionBudget(owner), b.autoscaler(owner), b.ingress(owner), b.networkPolicy(owner),
	}
}

// TestBuildersAreWrittenOnce proves that the API server does not change what a builder sets: after each change, the
// next reconcile writes nothing. This holds also in a process that has just started and remembers nothing.
func TestBuildersAreWrittenOnce(t *testing.T) {
	for name, apply := range map[string]func(*testing.T, *serverEnv, built) error{
		"Ensure": func(t *testing.T, env *serverEnv, b built) error {
			err := b.children().Reconcile(t.Context(), env.Client, env.Owner)
			if _, waits := errors.AsType[*WaitingError](err); waits { // no controller runs that could make the workloads ready
				return nil
			}
			return fmt.Errorf("expected a WaitingError: %w", err)
		},
		"Apply": func(t *testing.T, env *serverEnv, b built) error {
			_, err := Apply(t.Context(), env.Client, env.Owner, b.objects(env.Owner)...)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newServerEnv(t)
			for _, step := range []struct {
				reason string
				built  built
			}{
				{"created", built{}},
				{"changed", built{changed: true}},
				{"changed back", built{}},
			} {
				env.Requests.Sent()
				require.NoError(t, apply(t, env, step.built), step.reason)
				written := map[string]bool{}
				for _, request := range writes(env.Requests.Sent()) {
					written[request[strings.Index(request, " ")+1:]] = true
				}
				require.Len(t, written, len(built{}.objects(env.Owner)), "%s: %v", step.reason, written)
				require.NoError(t, apply(t, env, step.built))
				require.Empty(t, writes(env.Requests.Sent()), "%s: what the API server stored is what was built", step.reason)
			}
		})
	}
}

// writes returns the requests that are not reads.
func writes(sent []string) []string {
	return slices.DeleteFunc(sent, func(request string) bool { return strings.HasPrefix(request, "GET ") })
}

// TestBuildersMeetRestricted asks the API server, which warns of pods that violate the Pod Security Standard.
func TestBuildersMeetRestricted(t *testing.T) {
	cp := controlPlane(t)
	warnings := &warningRecorder{}
	config := rest.CopyConfig(cp.Config())
	config.WarningHandler = warnings
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	var namespace corev1.Namespace
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: controlplane.Namespace(t, cp)}, &namespace))
	namespace.Labels["pod-security.kubernetes.io/warn"] = "restricted"
	require.NoError(t, c.Update(t.Context(), &namespace))
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "web"}}

	root := built{}.deployment(owner)
	root.Spec.Template.Spec.SecurityContext = nil
	require.Eventually(t, func() bool {
		return c.Create(t.Context(), root.DeepCopy(), client.DryRunAll) == nil && len(*warnings) > 0
	}, controlplane.Patience, 20*time.Millisecond, "the API server warns, once its plug-in has observed the label")
	require.Contains(t, (*warnings)[0], "would violate PodSecurity")

	*warnings = nil
	for _, obj := range (built{}).objects(owner) {
		require.NoError(t, c.Create(t.Context(), obj, client.DryRunAll))
		require.Empty(t, *warnings, "%T", obj)
	}
}

type warningRecorder []string

func (w *warningRecorder) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

// TestBuildersDoNotChangeTheirArguments passes arguments that may be parts of an owner in the cache, which must not
// be changed.
func TestBuildersDoNotChangeTheirArguments(t *testing.T) {
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: map[string]string{"a": "b"}}}
	selector := map[string]string{"app": "web"}
	containers := []corev1.Container{{Name: "web"}}
	data, secret := map[string]string{"k": "v"}, map[string][]byte{"k": []byte("v")}
	ports := []corev1.ServicePort{{Port: 80}}
	rules := []networkingv1.NetworkPolicyIngressRule{{}}

	selected := map[string]map[string]string{}
	spoil := func(kind string, labels map[string]string) {
		selected[kind] = map[string]string{"app": labels["app"]}
		labels["app"] = "spoiled"
	}
	d := NewDeployment(owner, selector, containers...)
	spoil("Deployment", d.Spec.Selector.MatchLabels)
	spoil("pods of a Deployment", d.Spec.Template.Labels)
	s := NewStatefulSet(owner, selector, containers...)
	spoil("StatefulSet", s.Spec.Selector.MatchLabels)
	spoil("pods of a StatefulSet", s.Spec.Template.Labels)
	a := NewDaemonSet(owner, selector, containers...)
	spoil("DaemonSet", a.Spec.Selector.MatchLabels)
	spoil("pods of a DaemonSet", a.Spec.Template.Labels)
	spoil("Service", NewService(owner, selector, ports...).Spec.Selector)
	spoil("PodDisruptionBudget", NewPodDisruptionBudget(owner, selector).Spec.Selector.MatchLabels)
	spoil("NetworkPolicy", NewNetworkPolicy(owner, selector, rules...).Spec.PodSelector.MatchLabels)
	for kind, labels := range selected {
		require.Equal(t, map[string]string{"app": "web"}, labels, kind)
	}

	NewService(owner, nil, ports...).Spec.Ports[0].Port = 81
	NewJob(owner, containers...).Spec.Template.Spec.Containers[0].Name = "spoiled"
	NewCronJob(owner, "@daily", containers...).Spec.JobTemplate.Spec.Template.Spec.Containers[0].Name = "spoiled"
	NewConfigMap(owner, data).Data["k"] = "spoiled"
	NewSecret(owner, secret).Data["k"] = []byte("spoiled")
	NewNetworkPolicy(owner, nil, rules...).Spec.Ingress[0].Ports = []networkingv1.NetworkPolicyPort{{}}
	ObjectMeta(owner).Labels["a"] = "spoiled"

	require.Empty(t, cmp.Diff(map[string]string{"app": "web"}, selector))
	require.Empty(t, cmp.Diff([]corev1.Container{{Name: "web"}}, containers))
	require.Empty(t, cmp.Diff([]corev1.ServicePort{{Port: 80}}, ports))
	require.Empty(t, cmp.Diff([]networkingv1.NetworkPolicyIngressRule{{}}, rules))
	require.Equal(t, map[string]string{"k": "v"}, data)
	require.Equal(t, map[string][]byte{"k": []byte("v")}, secret)
	require.Equal(t, map[string]string{"a": "b"}, owner.Labels)
}

// TestJobPodsAreNotSelected proves that the selectors for the pods of an owner leave out the pods of its Jobs.
func TestJobPodsAreNotSelected(t *testing.T) {
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	require.Equal(t, NewService(owner, nil).Spec.Selector, NewDeployment(owner, nil).Spec.Template.Labels)
	require.Empty(t, NewJob(owner).Spec.Template.Labels)
	cronJob := NewCronJob(owner, "@daily")
	require.Empty(t, cronJob.Spec.JobTemplate.Spec.Template.Labels)
	require.Equal(t, Labels(owner), cronJob.Spec.JobTemplate.Labels, "the Jobs themselves are found by them")
}

func TestLabelValue(t *testing.T) {
	long := strings.Repeat("a", 100)
	value := LabelValue(long)
	require.Len(t, value, 63)
	require.NotEqual(t, value, LabelValue(value), "an object may have this name, and is another one")
	require.NotEqual(t, value, LabelValue(long+"a"))
	require.Equal(t, long[:62], LabelValue(long[:62]), "it fits")
}
