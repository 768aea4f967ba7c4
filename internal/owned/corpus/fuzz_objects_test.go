package corpus

import (
	"fmt"
	"iter"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// choices builds valid objects from random bytes. When the bytes are used up, it always chooses the first and simplest value.
type choices struct{ data []byte }

// randomObjects returns Deployments and Services with their numbers: count of each kind. Each object is made of step more random bytes than
// the object before. The objects are always the same, because files in testdata have hashes of them.
func randomObjects(count, step int) iter.Seq2[int, client.Object] {
	return func(yield func(int, client.Object) bool) {
		random := rand.New(rand.NewPCG(3, 4))
		for i := range count {
			data := make([]byte, step*i)
			for j := range data {
				data[j] = byte(random.Uint32())
			}
			forDeployment, forService := &choices{data: data}, &choices{data: data}
			if !yield(i, forDeployment.deployment("web", i%3 == 0)) || !yield(i, forService.service("web", i%3 == 0)) {
				return
			}
		}
	}
}

// below returns a random number from 0 to n-1.
func (c *choices) below(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func (c *choices) yes() bool { return c.below(2) == 1 }

// some returns up to n different items of a list, in a random order.
func some[T any](c *choices, n int, all ...T) []T {
	var chosen []T
	for range c.below(n + 1) {
		if len(all) == 0 {
			break
		}
		i := c.below(len(all))
		chosen = append(chosen, all[i])
		all = append(all[:i:i], all[i+1:]...)
	}
	return chosen
}

// oneOf returns one of the values.
func oneOf[T any](c *choices, all ...T) T { return all[c.below(len(all))] }

// maybe returns nil or a pointer to one of the values.
func maybe[T any](c *choices, all ...T) *T {
	if !c.yes() {
		return nil
	}
	return new(oneOf(c, all...))
}

func (c *choices) labels() map[string]string {
	labels := map[string]string{}
	for _, k := range some(c, 3, "a", "example.com/b", "c") {
		labels[k] = oneOf(c, "", "x", "y-z")
	}
	return labels
}

func (c *choices) deployment(name string, recreate bool) *appsv1.Deployment {
	selector := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels(), Annotations: c.labels()},
		Spec: appsv1.DeploymentSpec{
			Replicas:                maybe[int32](c, 0, 1, 5),
			Selector:                &metav1.LabelSelector{MatchLabels: selector},
			MinReadySeconds:         oneOf[int32](c, 0, 0, 3),
			RevisionHistoryLimit:    maybe[int32](c, 0, 3),
			ProgressDeadlineSeconds: maybe[int32](c, 60, 700),
			Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: c.labels(), Annotations: c.labels()}},
		},
	}
	d.Spec.Template.Labels["app"] = name
	switch {
	case recreate:
		d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	case c.yes():
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge:       maybe(c, intstr.FromInt32(2), intstr.FromString("30%")),
				MaxUnavailable: maybe(c, intstr.FromInt32(1), intstr.FromString("10%")),
			},
		}
	}
	c.fillPod(&d.Spec.Template.Spec)
	return d
}

func (c *choices) fillPod(pod *corev1.PodSpec) {
	pod.Volumes = c.volumes()
	for i, name := range append([]string{"main"}, some(c, 2, "side", "agent")...) {
		pod.Containers = append(pod.Containers, c.container(name, int32(8000+100*i), pod.Volumes))
	}
	for _, name := range some(c, 2, "prepare", "proxy") {
		init := corev1.Container{Name: name, Image: "init:1", Env: c.env()}
		if name == "proxy" {
			init.RestartPolicy = maybe(c, corev1.ContainerRestartPolicyAlways)
		}
		pod.InitContainers = append(pod.InitContainers, init)
	}
	pod.NodeSelector = c.labels()
	pod.TerminationGracePeriodSeconds = maybe[int64](c, 0, 5)
	pod.AutomountServiceAccountToken = maybe(c, true, false)
	pod.EnableServiceLinks = maybe(c, true, false)
	pod.DNSPolicy = oneOf(c, "", corev1.DNSDefault, corev1.DNSClusterFirst)
	pod.HostAliases = some(c, 2, corev1.HostAlias{IP: "10.0.0.1", Hostnames: []string{"a", "b"}}, corev1.HostAlias{IP: "10.0.0.2", Hostnames: []string{"c"}})
	pod.ImagePullSecrets = some(c, 2, corev1.LocalObjectReference{Name: "one"}, corev1.LocalObjectReference{Name: "two"})
	pod.Tolerations = some(c, 3, corev1.Toleration{Operator: corev1.TolerationOpExists}, corev1.Toleration{Key: "a", Value: "b"},
		corev1.Toleration{Key: "c", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(0))})
	spread := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{}}
	strict := spread
	strict.WhenUnsatisfiable, strict.LabelSelector = corev1.DoNotSchedule, nil
	pod.TopologySpreadConstraints = some(c, 2, spread, strict)
	if c.yes() {
		pod.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: maybe(c, true, false), FSGroup: maybe[int64](c, 0, 1000), SupplementalGroups: some(c, 2, int64(3), int64(4)),
		}
	}
	if c.yes() {
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight:          oneOf[int32](c, 1, 100),
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: c.labels()}},
			}},
		}}
	}
}

func (c *choices) volumes() []corev1.Volume {
	sources := map[string]func() corev1.VolumeSource{
		"scratch": func() corev1.VolumeSource {
			return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: maybe(c, resource.MustParse("1Gi"), resource.MustParse("1.5"))}}
		},
		"config": func() corev1.VolumeSource {
			return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, DefaultMode: maybe[int32](c, 0, 0o440), Optional: maybe(c, true, false),
				Items: some(c, 2, corev1.KeyToPath{Key: "a", Path: "a"}, corev1.KeyToPath{Key: "b", Path: "b/c", Mode: new(int32(0))}),
			}}
		},
		"secret": func() corev1.VolumeSource {
			return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: oneOf(c, "one", "two"), Optional: maybe(c, true, false)}}
		},
		"token": func() corev1.VolumeSource {
			return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: maybe[int64](c, 600, 3600)}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}},
			}}}
		},
	}
	var volumes []corev1.Volume
	for _, name := range some(c, 4, "scratch", "config", "secret", "token") {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: sources[name]()})
	}
	return volumes
}

func (c *choices) env() []corev1.EnvVar {
	return some(c, 4,
		corev1.EnvVar{Name: "PLAIN", Value: oneOf(c, "", "x", `"<ü>"`)},
		corev1.EnvVar{Name: "EMPTY"},
		corev1.EnvVar{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		corev1.EnvVar{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k", Optional: maybe(c, true, false)}}},
		corev1.EnvVar{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
			Resource: "limits.memory", Divisor: oneOf(c, resource.Quantity{}, resource.MustParse("1Mi"))}}},
	)
}

func (c *choices) container(name string, firstPort int32, volumes []corev1.Volume) corev1.Container {
	container := corev1.Container{
		Name: name, Image: oneOf(c, "app:1", "app:2", "app@sha256:0000000000000000000000000000000000000000000000000000000000000000"),
		// The API server sets its default for the first image only, so no image has the tag latest.
		ImagePullPolicy: oneOf(c, "", corev1.PullAlways, corev1.PullNever),
		Command:         some(c, 2, "run", "--fast", ""),
		Args:            some(c, 3, "a", "b", "$(PLAIN)"),
		Env:             c.env(),
		EnvFrom: some(c, 2,
			corev1.EnvFromSource{Prefix: "X_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}},
			corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "b"}, Optional: new(false)}}),
		Ports: some(c, 4,
			corev1.ContainerPort{Name: fmt.Sprintf("a%d", firstPort), ContainerPort: firstPort},
			corev1.ContainerPort{Name: fmt.Sprintf("b%d", firstPort), ContainerPort: firstPort, Protocol: corev1.ProtocolUDP},
			corev1.ContainerPort{ContainerPort: firstPort + 1, Protocol: corev1.ProtocolTCP}),
	}
	quantities := []resource.Quantity{resource.MustParse("0.1"), resource.MustParse("1500m"), resource.MustParse("64Mi"), resource.MustParse("1e3")}
	container.Resources.Limits = corev1.ResourceList{}
	for _, kind := range some(c, 2, corev1.ResourceCPU, corev1.ResourceMemory) {
		container.Resources.Limits[kind] = oneOf(c, quantities[1:]...)
	}
	if c.yes() {
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantities[0]}
	}
	for _, v := range volumes {
		if c.yes() {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name, ReadOnly: c.yes()})
		}
	}
	container.ReadinessProbe, container.LivenessProbe = c.probe(), c.probe()
	if c.yes() {
		container.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: maybe(c, true, false), RunAsUser: maybe[int64](c, 0, 1),
			Capabilities: &corev1.Capabilities{Drop: append([]corev1.Capability{"ALL"}, some(c, 2, corev1.Capability("CHOWN"), corev1.Capability("KILL"))...)},
		}
	}
	if c.yes() {
		container.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop"}}}}
	}
	return container
}

func (c *choices) probe() *corev1.Probe {
	handlers := []corev1.ProbeHandler{
		{HTTPGet: &corev1.HTTPGetAction{Path: oneOf(c, "", "/ready"), Port: oneOf(c, intstr.FromInt32(80), intstr.FromString("web")), Scheme: oneOf(c, "", corev1.URISchemeHTTPS)}},
		{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}},
		{Exec: &corev1.ExecAction{Command: append([]string{"true"}, some(c, 2, "x", "y")...)}},
		{GRPC: &corev1.GRPCAction{Port: 90, Service: maybe(c, "", "live")}},
	}
	if !c.yes() {
		return nil
	}
	return &corev1.Probe{
		ProbeHandler: oneOf(c, handlers...), InitialDelaySeconds: oneOf[int32](c, 0, 4), PeriodSeconds: oneOf[int32](c, 0, 7), FailureThreshold: oneOf[int32](c, 0, 9),
	}
}

func (c *choices) service(name string, headless bool) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels(), Annotations: c.labels()},
		Spec: corev1.ServiceSpec{
			Selector:                 c.labels(),
			PublishNotReadyAddresses: c.yes(),
			InternalTrafficPolicy:    maybe(c, corev1.ServiceInternalTrafficPolicyLocal, corev1.ServiceInternalTrafficPolicyCluster),
			Ports: append([]corev1.ServicePort{{Name: "first", Port: oneOf[int32](c, 80, 81), Protocol: oneOf(c, "", corev1.ProtocolTCP)}}, some(c, 3,
				corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromString("dns")},
				corev1.ServicePort{Name: "dns-tcp", Port: 53, TargetPort: intstr.FromInt32(5353)},
				corev1.ServicePort{Name: "web", Port: 443, AppProtocol: maybe(c, "https")})...),
		},
	}
	s.Spec.Selector["app"] = name
	if headless {
		s.Spec.ClusterIP = corev1.ClusterIPNone
		return s
	}
	s.Spec.Type = oneOf(c, "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	s.Spec.SessionAffinity = oneOf(c, "", corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && c.yes() {
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: maybe[int32](c, 60)}}
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		s.Spec.LoadBalancerSourceRanges = some(c, 2, "10.0.0.0/8", "192.168.0.0/16")
		s.Spec.ExternalTrafficPolicy = oneOf(c, "", corev1.ServiceExternalTrafficPolicyLocal)
	}
	return s
}
