package ownedresources

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

var (
	pathOfName  = field.NewPath("metadata", "name")
	pathOfPorts = field.NewPath("spec", "ports")
)

// text returns the errors as one text, or "" if there are none.
func text(errs field.ErrorList) string {
	if err := errs.ToAggregate(); err != nil {
		return err.Error()
	}
	return ""
}

func TestValidateServicePorts(t *testing.T) {
	tests := map[string]struct {
		reason string
		ports  []corev1.ServicePort
		want   string
	}{
		"None": {
			reason: "a headless Service needs none",
		},
		"OneWithoutName": {
			reason: "a single port needs no name",
			ports:  []corev1.ServicePort{{Port: 80}},
		},
		"BothProtocols": {
			reason: "the same number with another protocol is another port",
			ports:  []corev1.ServicePort{{Name: "dns", Port: 53}, {Name: "dns-udp", Port: 53, Protocol: corev1.ProtocolUDP}},
		},
		"SameTarget": {
			reason: "two ports may lead to one",
			ports:  []corev1.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "b", Port: 81, TargetPort: intstr.FromString("http")}},
		},
		"DuplicateNumber": {
			reason: "an unset protocol is TCP",
			ports:  []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 80, Protocol: corev1.ProtocolTCP}},
			want:   `spec.ports[1]: Duplicate value: "80/TCP": 80/TCP is there twice, remove one of them`,
		},
		"DuplicateName": {
			reason: "a name leads to one port",
			ports:  []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "a", Port: 81}},
			want:   `spec.ports[1].name: Duplicate value: "a": choose another name`,
		},
		"DuplicateNodePort": {
			reason: "a node has one port of a number",
			ports:  []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30080}, {Name: "b", Port: 81, NodePort: 30080}},
			want:   `spec.ports[1].nodePort: Duplicate value: "30080/TCP": choose another number, or leave it unset`,
		},
		"SeveralWithoutName": {
			reason: "each of several ports needs a name",
			ports:  []corev1.ServicePort{{Port: 80}, {Name: "b", Port: 81}},
			want:   "spec.ports[0].name: Required value: each of several ports needs a name",
		},
		"InvalidName": {
			reason: "a name is a DNS label",
			ports:  []corev1.ServicePort{{Name: "Web", Port: 80}},
			want:   `spec.ports[0].name: Invalid value: "Web": a lowercase RFC 1123 label`,
		},
		"InvalidNumber": {
			reason: "a number has 16 bits and is not zero",
			ports:  []corev1.ServicePort{{Name: "a", TargetPort: intstr.FromInt32(80)}, {Name: "b", Port: 65536, TargetPort: intstr.FromInt32(80)}},
			want: "[spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, " +
				"spec.ports[1].port: Invalid value: 65536: must be between 1 and 65535, inclusive]",
		},
		"InvalidTargetNumber": {
			reason: "the port of a container is a port",
			ports:  []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(70000)}},
			want:   "spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
		},
		"InvalidTargetName": {
			reason: "the name of a container's port is shorter than that of a Service's",
			ports:  []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("a-name-of-a-service")}},
			want:   `spec.ports[0].targetPort: Invalid value: "a-name-of-a-service": must be no more than 15`,
		},
		"InvalidProtocol": {
			reason: "HTTP is no protocol of a port",
			ports:  []corev1.ServicePort{{Port: 80, Protocol: "HTTP"}},
			want:   `spec.ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := text(ValidateServicePorts(tc.ports, pathOfPorts))
			require.Equal(t, tc.want == "", got == "", "%s: %s", tc.reason, got)
			require.Contains(t, got, tc.want, tc.reason)
		})
	}
	t.Run("SameAsAPIServer", func(t *testing.T) {
		c, err := client.New(controlPlane(t).Config(), client.Options{})
		require.NoError(t, err)
		for name, tc := range tests {
			service := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: slices.Clone(tc.ports)},
			}
			if strings.Contains(name, "NodePort") {
				service.Spec.Type, service.Spec.ClusterIP = corev1.ServiceTypeNodePort, ""
			}
			want := refusedFields(t, c.Create(t.Context(), service, client.DryRunAll))
			var got []string
			for _, e := range ValidateServicePorts(tc.ports, pathOfPorts) {
				got = append(got, e.Field)
			}
			slices.Sort(got)
			require.Empty(t, cmp.Diff(want, got), "%s: -API server +ValidateServicePorts", name)
		}
	})
}

// refusedFields returns the paths of the fields for which the API server refuses an object, sorted.
func refusedFields(t *testing.T, err error) (fields []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	require.True(t, apierrors.IsInvalid(err), err)
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return fields
}

func TestValidateNames(t *testing.T) {
	type validate = func(string, *field.Path) field.ErrorList
	tests := map[string]struct {
		reason   string
		validate validate
		child    func(name string) client.Object
		good     []string
		bad      map[string]string // a part of the error for each refused name
	}{
		"Service": {
			reason:   "a Service is a part of a DNS name",
			validate: ValidateName[corev1.Service],
			child: func(name string) client.Object {
				return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			},
			good: []string{"web", "a", "web-1", strings.Repeat("a", 63)},
			bad: map[string]string{
				"web.example":           "not a name for a Service, choose another: a DNS-1035 label must consist of",
				"Web":                   "a DNS-1035 label must consist of",
				"1-web":                 "start with an alphabetic character",
				strings.Repeat("a", 64): "must be no more than 63",
			},
		},
		"StatefulSet": {
			reason:   "pods carry the name of their revision in a label",
			validate: ValidateName[appsv1.StatefulSet],
			child: func(name string) client.Object {
				s := NewStatefulSet(&corev1.ConfigMap{}, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
				s.Name, s.Spec.ServiceName = name, ""
				return s
			},
			good: []string{"db", "1-db", strings.Repeat("a", 52)},
			bad: map[string]string{
				"db.example":            "not a name for a StatefulSet, choose another: must not contain dots",
				strings.Repeat("a", 53): "must be no more than 52",
				strings.Repeat("a", 64): "must be no more than 63",
			},
		},
		"Job": {
			reason:   "pods carry the name in a label",
			validate: ValidateName[batchv1.Job],
			child: func(name string) client.Object {
				j := NewJob(&corev1.ConfigMap{}, corev1.Container{Name: "web", Image: "nginx:1.27"})
				j.Name = name
				return j
			},
			good: []string{"migrate", "1.2.3-migrate", strings.Repeat("a", 63)},
			bad: map[string]string{
				"migrate_1":             "not a name for a Job, choose another: a lowercase RFC 1123 subdomain",
				strings.Repeat("a", 64): "must be no more than 63",
			},
		},
		"CronJob": {
			reason:   "the names of its Jobs are longer",
			validate: ValidateName[batchv1.CronJob],
			child: func(name string) client.Object {
				j := NewCronJob(&corev1.ConfigMap{}, "@daily", corev1.Container{Name: "web", Image: "nginx:1.27"})
				j.Name = name
				return j
			},
			good: []string{"backup", "1.2.3-backup", strings.Repeat("a", 52)},
			bad: map[string]string{
				"Backup":                "not a name for a CronJob, choose another: a lowercase RFC 1123 subdomain",
				strings.Repeat("a", 53): "must be no more than 52",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, good := range tc.good {
				require.Empty(t, tc.validate(good, pathOfName), tc.reason)
			}
			for bad, want := range tc.bad {
				require.Contains(t, text(tc.validate(bad, pathOfName)), want, tc.reason)
				require.Contains(t, text(tc.validate(bad, pathOfName)), "metadata.name: Invalid value")
			}
		})
	}
	t.Run("SameAsAPIServer", func(t *testing.T) {
		c, err := client.New(controlPlane(t).Config(), client.Options{})
		require.NoError(t, err)
		c = client.NewNamespacedClient(c, "default")
		for kind, tc := range tests {
			for _, good := range tc.good {
				require.NoError(t, c.Create(t.Context(), tc.child(good), client.DryRunAll), kind)
			}
			for bad := range tc.bad {
				err := c.Create(t.Context(), tc.child(bad), client.DryRunAll)
				switch kind + "/" + bad {
				case "Service/1-web": // older API servers refuse it
				case "StatefulSet/" + strings.Repeat("a", 53): // the API server accepts it, and refuses the pods: see TestLongStatefulSetName
					require.NoError(t, err)
				default:
					require.True(t, apierrors.IsInvalid(err), "%s %s: %v", kind, bad, err)
				}
			}
		}
	})
}

// TestLongStatefulSetName proves the limit of ValidateName for a StatefulSet. The API server accepts a longer name, but the
// controller cannot create pods for it.
func TestLongStatefulSetName(t *testing.T) {
	cp := cluster(t)
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	c = client.NewNamespacedClient(c, controlplane.Namespace(t, cp))
	for _, length := range []int{maxRevisionedName, 63} {
		s := NewStatefulSet(&corev1.ConfigMap{}, map[string]string{"app": "db"}, corev1.Container{Name: "db", Image: "redis:7"})
		s.Name, s.Spec.ServiceName = strings.Repeat("a", length), ""
		require.NoError(t, c.Create(t.Context(), s))
	}
	var refused corev1.Event
	require.Eventually(t, func() bool {
		var events corev1.EventList
		err := c.List(t.Context(), &events)
		i := slices.IndexFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "FailedCreate" })
		if i >= 0 {
			refused = events.Items[i]
		}
		return err == nil && i >= 0
	}, controlplane.Patience, 100*time.Millisecond, "the controller tries to create a pod of the longer one")
	require.Len(t, refused.InvolvedObject.Name, 63)
	require.Contains(t, refused.Message, "must be no more than 63")
	var pods corev1.PodList
	require.Eventually(t, func() bool {
		return c.List(t.Context(), &pods) == nil && len(pods.Items) > 0
	}, controlplane.Patience, 100*time.Millisecond, "the other one gets a pod")
	for _, pod := range pods.Items {
		require.Equal(t, strings.Repeat("a", maxRevisionedName)+"-0", pod.Name)
	}
}
