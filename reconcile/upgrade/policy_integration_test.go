package upgrade_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// With the admission policy of docs/upgrade.md, an account can make a plan, and cannot write.
func TestPolicyOfDryRuns(t *testing.T) {
	e := newEnv(t)
	user := "system:serviceaccount:" + e.namespace + ":planner"
	text, err := os.ReadFile("../../docs/upgrade/policy.yaml")
	require.NoError(t, err)
	text = bytes.ReplaceAll(text, []byte("system:serviceaccount:shop-system:planner"), []byte(user))
	text = bytes.ReplaceAll(text, []byte("only-dry-runs"), []byte(e.namespace))
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := documents.Decode(obj)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NoError(t, e.client.Create(t.Context(), obj))
		t.Cleanup(func() { require.NoError(t, e.client.Delete(context.Background(), obj)) })
	}
	e.create(t, newBudget("web"),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
		})
	access := controlPlane(t).ConfigFor(user)
	planner, err := client.New(access, client.Options{Mapper: e.client.RESTMapper()})
	require.NoError(t, err)
	newMap := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, GenerateName: "any-"}}
	}
	require.Eventually(t, func() bool { // the API server reads policies and roles in the background
		err := planner.Create(t.Context(), newMap())
		return err != nil && strings.Contains(err.Error(), "this account may only send dry runs")
	}, controlplane.Patience, 50*time.Millisecond)
	require.NoError(t, planner.Create(t.Context(), newMap(), client.DryRunAll))
	theirs := newMap()
	require.NoError(t, e.client.Create(t.Context(), theirs), "others are not limited")
	require.ErrorContains(t, planner.Delete(t.Context(), theirs), "this account may only send dry runs")

	_, err = planWith(t.Context(), access, e.namespace, "text", children(ownedresources.Build(settings("one"))))
	require.ErrorIs(t, err, upgrade.ErrChanges)
}
