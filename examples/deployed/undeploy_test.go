//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	databasev1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestUndeploy undeploys an operator whose objects have finalizers. The test does what the operator would do.
func TestUndeploy(t *testing.T) {
	cp := controlplane.New(t, controlplane.Options{Controllers: true}) // not shared with other tests: the CRDs are deleted
	programs, err := controlplane.Build(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	undeploy := func(ctx context.Context, wait, overlay string) (string, error) {
		config := filepath.Join("..", "databaseuser", "config")
		command := exec.CommandContext(ctx, filepath.Join("..", "new", "template", "undeploy"),
			filepath.Join(programs, "kubectl"), filepath.Join(config, overlay), filepath.Join(config, "crd", "bases"))
		command.Env = append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig(), "WAIT="+wait)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, databasev1alpha1.AddToScheme(scheme))
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	_, err = cp.Kubectl(t.Context(), "apply", "--server-side", "--kustomize", filepath.Join("..", "databaseuser", "config", "default"))
	require.NoError(t, err)
	_, err = cp.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd/databaseusers.mygroup.handsomeguy.cn", "--timeout="+operatortest.Patience.String())
	require.NoError(t, err)
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "databaseuser-system", Name: "databaseuser-controller-manager"}}
	user := &databasev1alpha1.DatabaseUser{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice", Finalizers: []string{"example.com/account"}}}
	user.Spec.User = "alice"
	user.Spec.Password = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "alice"}, Key: "password"}
	require.NoError(t, c.Create(t.Context(), user))

	said, err := undeploy(t.Context(), "1", "default")
	require.Error(t, err, "the operator does not remove the finalizer")
	assert.Contains(t, said, `DatabaseUser default/alice, finalizers: ["example.com/account"], Ready: `)
	assert.Contains(t, said, "Deployment databaseuser-system/databaseuser-controller-manager, pods that are ready: ")
	assert.Contains(t, said, "nothing else was deleted")
	operatortest.Live(t, c, operator)
	assert.Zero(t, operator.DeletionTimestamp, "only the operator can remove the finalizer")

	ended := make(chan error, 1)
	go func() {
		var err error
		said, err = undeploy(t.Context(), "120", "default")
		ended <- err
	}()
	operatortest.Live(t, c, user)
	require.NotNil(t, user.DeletionTimestamp)
	controllerutil.RemoveFinalizer(user, "example.com/account")
	require.NoError(t, c.Update(t.Context(), user))
	require.NoError(t, <-ended, "%s", said)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operator.Namespace}}
	assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace)), "%s", said)
	out, err := cp.Kubectl(t.Context(), "get", "crd", "-o", "name")
	require.NoError(t, err)
	assert.Empty(t, out)

	said, err = undeploy(t.Context(), "60", "default")
	require.NoError(t, err, "nothing is left: %s", said)
}
