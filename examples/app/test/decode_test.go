package test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

var kind = appv1.GroupVersion.WithKind("App")

// TestQuantities checks that the API server refuses the quantities that Go cannot decode, or that cost much to compute with:
// one such object would keep the operator from listing the Apps of all namespaces.
func TestQuantities(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	tests := map[string]struct {
		quantity any
		refused  bool
		reason   string
	}{
		"thousandths":       {quantity: "100m", reason: "half of all CPU requests are written so"},
		"binary":            {quantity: "1Gi", reason: "memory is written so"},
		"decimals":          {quantity: "1.5", reason: "a number"},
		"less than one":     {quantity: "0.5", reason: "a number"},
		"no leading zero":   {quantity: ".5", reason: "Go decodes it"},
		"exponent":          {quantity: "1e3", reason: "Go decodes it"},
		"signed exponent":   {quantity: "+15E-1", reason: "Go decodes it"},
		"number":            {quantity: 2, reason: "YAML without quotes"},
		"large number":      {quantity: int64(1) << 40, reason: "bytes without a suffix exceed an int32"},
		"megabytes":         {quantity: "500M", reason: "memory is written so"},
		"exa":               {quantity: "1E", reason: "a suffix, not an exponent"},
		"decimal exponent":  {quantity: "1e1.5", refused: true, reason: "Go cannot decode it"},
		"overflow":          {quantity: "1e99999999999999999999", refused: true, reason: "Go cannot decode it"},
		"immense":           {quantity: "1e999999999", refused: true, reason: "the API server would compute with a number of a billion digits"},
		"tiny":              {quantity: "1e-999999999", refused: true, reason: "the same"},
		"three digits":      {quantity: "1e100", refused: true, reason: "nobody has as much"},
		"many digits":       {quantity: "1234567890123456789", refused: true, reason: "19 digits may exceed an int64"},
		"many decimals":     {quantity: "0.1234567890", refused: true, reason: "nano is the smallest unit"},
		"no number":         {quantity: "much", refused: true, reason: "Go cannot decode it"},
		"no digits":         {quantity: ".", refused: true, reason: "Go cannot decode it"},
		"fractional number": {quantity: 0.5, refused: true, reason: "a number without quotes is an integer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, list := range []string{"limits", "requests"} {
				want := ""
				if tc.refused {
					want = "spec.resources." + list + ".cpu"
				}
				resources := map[string]any{list: map[string]any{"cpu": tc.quantity}}
				u.AssertAdmission(t, kind, map[string]any{"image": "nginx", "resources": resources}, want, tc.reason)
			}
		})
	}
	require.NoError(t, u.List(t.Context(), &appv1.AppList{}, client.InNamespace(u.Namespace)), "the operator decodes all that were accepted")
}

// TestNumbersOrNames checks the fields that are a number or a text. Go has an int32 for the number.
func TestNumbersOrNames(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	probe := func(handler string, port any) map[string]any {
		return map[string]any{handler: map[string]any{"port": port}}
	}
	ports := func(target any) []any {
		return []any{map[string]any{"port": 80, "targetPort": target}}
	}
	divisor := func(divisor any) []any {
		return []any{map[string]any{"name": "A", "valueFrom": map[string]any{
			"resourceFieldRef": map[string]any{"resource": "limits.cpu", "divisor": divisor},
		}}}
	}
	const huge = int64(99999999999)
	tests := map[string]struct {
		field  string
		value  any
		want   string // in the error; empty if it is accepted
		reason string
	}{
		"number":                {field: "minAvailable", value: 1, reason: "a number of pods"},
		"percentage":            {field: "minAvailable", value: "50%", reason: "a part of the pods"},
		"overflow":              {field: "minAvailable", value: huge, want: "spec.minAvailable", reason: "Go cannot decode it"},
		"negative":              {field: "minAvailable", value: -1, want: "spec.minAvailable", reason: "the API server refuses the budget"},
		"number with exponent":  {field: "minAvailable", value: 1e30, want: "spec.minAvailable", reason: "Go cannot decode it"},
		"target port":           {field: "ports", value: ports(8080), reason: "a number"},
		"named target port":     {field: "ports", value: ports("web"), reason: "a name"},
		"unset target port":     {field: "ports", value: ports(0), reason: "Go encodes an unset one so"},
		"target port 70000":     {field: "ports", value: ports(70000), want: "every targetPort must be a name, or a number up to 65535", reason: "no such port"},
		"target port overflow":  {field: "ports", value: ports(huge), want: "spec.ports", reason: "Go cannot decode it"},
		"HTTP":                  {field: "livenessProbe", value: probe("httpGet", 8080), reason: "a number"},
		"HTTP by name":          {field: "readinessProbe", value: probe("httpGet", "web"), reason: "a name"},
		"TCP":                   {field: "startupProbe", value: probe("tcpSocket", 8080), reason: "a number"},
		"liveness by HTTP":      {field: "livenessProbe", value: probe("httpGet", huge), want: "spec.livenessProbe.httpGet.port", reason: "Go cannot decode it"},
		"liveness by TCP":       {field: "livenessProbe", value: probe("tcpSocket", huge), want: "spec.livenessProbe.tcpSocket.port", reason: "Go cannot decode it"},
		"readiness by HTTP":     {field: "readinessProbe", value: probe("httpGet", huge), want: "spec.readinessProbe.httpGet.port", reason: "Go cannot decode it"},
		"readiness by TCP":      {field: "readinessProbe", value: probe("tcpSocket", -huge), want: "spec.readinessProbe.tcpSocket.port", reason: "Go cannot decode it"},
		"startup by HTTP":       {field: "startupProbe", value: probe("httpGet", 0), want: "spec.startupProbe.httpGet.port", reason: "no such port"},
		"startup by TCP":        {field: "startupProbe", value: probe("tcpSocket", huge), want: "spec.startupProbe.tcpSocket.port", reason: "Go cannot decode it"},
		"divisor":               {field: "envs", value: divisor("1Mi"), reason: "a unit"},
		"divisor as number":     {field: "envs", value: divisor(1), reason: "the default"},
		"divisor with exponent": {field: "envs", value: divisor("1e1.5"), want: "every divisor must be", reason: "Go cannot decode it"},
		"immense divisor":       {field: "envs", value: divisor("1e999999999"), want: "every divisor must be", reason: "it costs the API server much"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u.AssertAdmission(t, kind, map[string]any{"image": "nginx", tc.field: tc.value}, tc.want, tc.reason)
		})
	}
	require.NoError(t, u.List(t.Context(), &appv1.AppList{}, client.InNamespace(u.Namespace)), "the operator decodes all that were accepted")
}

// TestStatusDecodes checks the same of the status, which others than the operator may have the right to write.
func TestStatusDecodes(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	at := func(time string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "lastUpdateTime": "2020-01-01T00:00:00Z", "lastTransitionTime": time,
		}}}
	}
	tests := map[string]struct {
		status map[string]any
		want   string // in the error; empty if it is accepted
		reason string
	}{
		"nothing":              {status: map[string]any{}, reason: "an App that is new"},
		"time":                 {status: at("2020-01-01T00:00:00Z"), reason: "as the operator writes it"},
		"time in a zone":       {status: at("2020-01-01T00:00:00.5+01:00"), reason: "Go decodes it"},
		"letter in seconds":    {status: at("2020-01-01T00:00:00x5Z"), want: "status.conditions", reason: "format date-time accepts it, and Go does not"},
		"small letters":        {status: at("2020-01-01t00:00:00z"), want: "status.conditions", reason: "format date-time accepts it, and Go does not"},
		"replicas overflow":    {status: map[string]any{"readyReplicas": int64(1) << 32}, want: "in readyReplicas", reason: "Go has an int32"},
		"update time":          {status: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "lastUpdateTime": "2020-01-01T00:00:00x5Z"}}}, want: "status.conditions", reason: "a condition of a Deployment has two times"},
		"unavailable overflow": {status: map[string]any{"unavailableReplicas": 99999999999}, want: "in unavailableReplicas", reason: "Go has an int32"},
		"collision overflow":   {status: map[string]any{"collisionCount": -99999999999}, want: "in collisionCount", reason: "Go has an int32"},
		"generation as text":   {status: map[string]any{"observedGeneration": "1"}, want: "status.observedGeneration", reason: "Go has an int64"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := u.Untyped(kind, map[string]any{"image": "nginx"})
			require.NoError(t, u.Create(t.Context(), m))
			patch, err := json.Marshal(map[string]any{"status": tc.status})
			require.NoError(t, err)
			err = u.Status().Patch(t.Context(), m, client.RawPatch(types.MergePatchType, patch))
			if tc.want == "" {
				require.NoError(t, err, tc.reason)
				return
			}
			require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.reason, err)
			assert.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
	require.NoError(t, u.List(t.Context(), &appv1.AppList{}, client.InNamespace(u.Namespace)), "the operator decodes all that were accepted")
}

// TestConditionWithoutTimes checks that the status is written if a condition of the Deployment has no times, which the schema
// of a Deployment allows.
func TestConditionWithoutTimes(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web")
	d := u.Deployment("web")
	operatortest.Eventually(t, "there is a Deployment", func(c *assert.CollectT) { operatortest.Live(c, u, d) })
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "Tested"}}
	require.NoError(t, u.Status().Update(t.Context(), d))
	u.condition(t, "web", string(appsv1.DeploymentProgressing), "Tested")
	got, _ := controller.Conditions.Get(operatortest.Live(t, u, u.app("web")).Status.Conditions, string(appsv1.DeploymentProgressing))
	assert.Equal(t, d.CreationTimestamp, got.LastTransitionTime)
}
