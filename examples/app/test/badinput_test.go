package test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	list := func(items ...map[string]any) []any {
		all := make([]any, len(items))
		for i := range items {
			all[i] = items[i]
		}
		return all
	}
	tests := map[string]struct {
		set    map[string]any // beside the image
		want   string         // in the error; empty if it is accepted
		reason string
	}{
		"image only":          {reason: "all else is optional"},
		"no replicas wanted":  {set: map[string]any{"replicas": 0}, reason: "zero is a number of replicas"},
		"negative replicas":   {set: map[string]any{"replicas": -1}, want: "spec.replicas in body should be greater than or equal to 0", reason: "no pods fewer than none"},
		"replicas overflow":   {set: map[string]any{"replicas": int64(1) << 32}, want: "spec.replicas", reason: "the operator could not read any App any more"},
		"replicas as text":    {set: map[string]any{"replicas": "2"}, want: "spec.replicas in body must be of type integer", reason: "YAML quotes slip in"},
		"no image":            {set: map[string]any{"image": nil}, want: "spec.image: Required value", reason: "there is nothing to run"},
		"empty image":         {set: map[string]any{"image": ""}, want: "spec.image in body should be at least 1 chars long", reason: "there is nothing to run"},
		"port 0":              {set: map[string]any{"ports": list(map[string]any{"port": 0})}, want: "every port must be from 1 to 65535", reason: "no such port"},
		"port 70000":          {set: map[string]any{"ports": list(map[string]any{"port": 70000})}, want: "every port must be from 1 to 65535", reason: "no such port"},
		"no port":             {set: map[string]any{"ports": list(map[string]any{"targetPort": 80})}, want: "spec.ports[0].port: Required value", reason: "nobody could connect"},
		"duplicate port":      {set: map[string]any{"ports": list(map[string]any{"port": 80}, map[string]any{"port": 80})}, reason: "shown in a condition"},
		"env twice":           {set: map[string]any{"envs": list(map[string]any{"name": "A"}, map[string]any{"name": "A"})}, reason: "the last counts"},
		"no quantity":         {set: map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "much"}}}, want: "spec.resources.limits.cpu", reason: "the operator could not read it"},
		"external name":       {set: map[string]any{"serviceType": "ExternalName"}, want: "spec.serviceType: Unsupported value", reason: "it leads elsewhere"},
		"reference twice":     {set: map[string]any{"configMapRefs": list(map[string]any{"name": "a"}, map[string]any{"name": "a"})}, want: "Duplicate value", reason: "once is enough"},
		"nameless reference":  {set: map[string]any{"secretRefs": list(map[string]any{})}, want: "every reference needs a name", reason: "it refers to nothing"},
		"many envs":           {set: map[string]any{"envs": slices.Repeat(list(map[string]any{"name": "A"}), 1001)}, want: "spec.envs: Too many", reason: "no container needs as many"},
		"many sources":        {set: map[string]any{"envFrom": slices.Repeat(list(map[string]any{}), 101)}, want: "spec.envFrom: Too many", reason: "no container needs as many"},
		"percent or a number": {set: map[string]any{"minAvailable": true}, want: "spec.minAvailable", reason: "neither"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"image": "nginx:1.16.1"}
			maps.Copy(spec, tc.set)
			u.AssertAdmission(t, appv1.GroupVersion.WithKind("App"), spec, tc.want, tc.reason)
		})
	}
}

// TestRefused covers input that the schema accepts and the API server refuses: the condition has its words, and other objects
// are reconciled.
func TestRefused(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	tests := map[string]struct {
		edit    func(*appv1.AppSpec)
		service bool   // it is the Service that is refused
		want    string // reason
		says    string
	}{
		"env-name":                       {edit: func(s *appv1.AppSpec) { s.Envs = []corev1.EnvVar{{Name: "A=B"}} }, want: "Invalid", says: `env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='`},
		"env-unnamed":                    {edit: func(s *appv1.AppSpec) { s.Envs = []corev1.EnvVar{{Value: "x"}} }, want: "Invalid", says: "env[0].name: Required value"},
		"target-name":                    {edit: func(s *appv1.AppSpec) { s.Ports[0].TargetPort = intstr.FromString("Web Server") }, want: "Invalid", says: "ports[0].name"},
		"limits":                         {edit: func(s *appv1.AppSpec) { s.Resources.Claims = []corev1.ResourceClaim{{Name: "none"}} }, want: "Invalid", says: "resources.claims"},
		"probe":                          {edit: func(s *appv1.AppSpec) { s.LivenessProbe = &corev1.Probe{} }, want: "Invalid", says: "livenessProbe: Required value: must specify a handler type"},
		"account":                        {edit: func(s *appv1.AppSpec) { s.ServiceAccountName = "No Account" }, want: "Invalid", says: "serviceAccountName"},
		"budget":                         {edit: func(s *appv1.AppSpec) { s.MinAvailable = new(intstr.FromString("half")) }, want: "Invalid", says: "spec.minAvailable"},
		"twice":                          {edit: func(s *appv1.AppSpec) { s.Ports = append(s.Ports, s.Ports[0]) }, service: true, want: "DuplicatePort", says: "8080/TCP is there twice"},
		"port-name":                      {edit: func(s *appv1.AppSpec) { s.Ports[0].Name = "Web" }, service: true, want: "Invalid", says: "spec.ports[0].name"},
		"protocol":                       {edit: func(s *appv1.AppSpec) { s.Ports[0].Protocol = "HTTP" }, want: "Invalid", says: "protocol"},
		"node-port":                      {edit: func(s *appv1.AppSpec) { s.Ports[0].NodePort = 30080 }, service: true, want: "Invalid", says: "may not be used when `type` is 'ClusterIP'"},
		"1-digit":                        {edit: func(*appv1.AppSpec) {}, service: true, want: "InvalidServiceName", says: "DNS-1035 label"},
		"dots.in.name":                   {edit: func(*appv1.AppSpec) {}, want: "Invalid", says: "spec.template.spec.containers[0].name: Invalid value"},
		"long" + strings.Repeat("g", 70): {edit: func(*appv1.AppSpec) {}, want: "Invalid", says: "must be no more than 63"},
	}
	for name, tc := range tests {
		u.create(t, name, tc.edit)
	}
	u.create(t, "bystander")
	u.settled(t, "bystander", corev1.ConditionTrue)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := u.condition(t, name, conditions.Stalled, tc.want)
			assert.Contains(t, got.Message, tc.says)
			assert.Equal(t, metav1.ConditionFalse, u.condition(t, name, conditions.Ready, tc.want).Status)
			if tc.service {
				u.condition(t, name, "ServiceReady", tc.want)
				operatortest.Eventually(t, "the pods run all the same", func(c *assert.CollectT) {
					assert.EqualValues(c, 1, operatortest.Live(c, u, u.app(name)).Status.ReadyReplicas)
				})
			}
			if strings.ContainsAny(name, ".1") || len(name) > 63 {
				return // a name cannot be put right
			}
			u.set(t, name, func(s *appv1.AppSpec) {
				*s = appv1.AppSpec{Image: s.Image, Replicas: s.Replicas, Ports: []corev1.ServicePort{{Port: 80}}}
			})
			u.settled(t, name, corev1.ConditionTrue)
		})
	}
}

// TestRefusedLater changes an App with children to invalid input.
func TestRefusedLater(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web")
	u.settled(t, app.Name, corev1.ConditionTrue)
	u.set(t, app.Name, func(s *appv1.AppSpec) { s.Envs, s.Ports[0].Name = []corev1.EnvVar{{Name: "A=B"}}, "Web" })
	assert.Contains(t, u.condition(t, app.Name, conditions.Ready, "Invalid").Message, "A=B")
	assert.Contains(t, u.condition(t, app.Name, "ServiceReady", "Invalid").Message, "spec.ports[0].name")
	app = operatortest.Live(t, u, app)
	assert.EqualValues(t, 1, app.Status.ReadyReplicas, "what there was goes on")
	assert.Equal(t, "web."+u.Namespace+".svc:8080", app.Status.Endpoint)
	u.set(t, app.Name, func(s *appv1.AppSpec) { s.Envs, s.Ports[0].Name = nil, "web" })
	u.settled(t, app.Name, corev1.ConditionTrue)
}

// TestForeignChildren checks that a child of somebody else is left alone and named, also if it is not in the cache.
func TestForeignChildren(t *testing.T) {
	t.Parallel()
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "somebody", UID: "somebody", Controller: new(true)}
	foreignDeployment := func(u *user) client.Object {
		d := u.Deployment("web")
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mine"}}
		d.Spec.Template.Labels = map[string]string{"app": "mine"}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "mine", Image: "mine"}}
		return d
	}
	foreignService := func(u *user) client.Object {
		s := u.Service("web")
		s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		return s
	}
	for name, tc := range map[string]struct {
		foreign   func(*user) client.Object
		condition string
		owners    []metav1.OwnerReference
		hidden    client.Object // the cache shows only the operator's objects of this kind
		want      string
	}{
		"nobody's Deployment":         {foreign: foreignDeployment, condition: conditions.Ready, want: "is not controlled by anything"},
		"somebody's Deployment":       {foreign: foreignDeployment, condition: conditions.Ready, owners: []metav1.OwnerReference{owner}, want: "belongs to ConfigMap somebody"},
		"Deployment not in the cache": {foreign: foreignDeployment, condition: conditions.Ready, hidden: &appsv1.Deployment{}, want: "is not controlled by anything"},
		"nobody's Service":            {foreign: foreignService, condition: "ServiceReady", want: "is not controlled by anything"},
		"somebody's Service":          {foreign: foreignService, condition: "ServiceReady", owners: []metav1.OwnerReference{owner}, want: "belongs to ConfigMap somebody"},
		"Service not in the cache":    {foreign: foreignService, condition: "ServiceReady", hidden: &corev1.Service{}, want: "is not controlled by anything"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, apiServer(t)) // no garbage collector that takes the owner for gone
			foreign := tc.foreign(u)
			foreign.SetOwnerReferences(tc.owners)
			require.NoError(t, u.Create(t.Context(), foreign))
			version := foreign.GetResourceVersion()
			var options ctrl.Options
			if tc.hidden != nil {
				options.Cache = controller.Cache(u.Namespace)
				options.Cache.ByObject = map[client.Object]cache.ByObject{
					tc.hidden: {Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "app"})},
				}
			}
			startOperator(t, u.ControlPlane.Config(), options, u.Namespace)

			u.create(t, "web")
			got := u.condition(t, "web", tc.condition, "OwnedByAnother")
			assert.Contains(t, got.Message, tc.want)
			assert.Equal(t, version, operatortest.Live(t, u, foreign).GetResourceVersion(), "it was not written to")
			other := client.Object(u.Service("web"))
			if tc.condition == "ServiceReady" {
				other = u.Deployment("web")
			}
			assert.True(t, metav1.IsControlledBy(operatortest.Live(t, u, other), operatortest.Live(t, u, u.app("web"))), "the other child is made nevertheless")

			require.NoError(t, u.Delete(t.Context(), foreign))
			operatortest.Eventually(t, "it heals when the name is free", func(c *assert.CollectT) {
				assert.True(c, metav1.IsControlledBy(operatortest.Live(c, u, foreign), operatortest.Live(c, u, u.app("web"))))
			})
		})
	}
}
