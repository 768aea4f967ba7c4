package reconciletest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// pageOf returns the page of a scenario's first failure, "" if it has none.
func pageOf(t *testing.T, s reconciletest.Scenario) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, reconciletest.ExploreQuietly(t, s).WritePage(&b))
	return b.String()
}

// expectText fails the test unless the page has the text, or lacks it if want is false. It does not print the page, which is long.
func expectText(t *testing.T, page, text string, want bool) {
	t.Helper()
	if strings.Contains(page, text) != want {
		t.Errorf("the page contains %q: %v, want %v", text, !want, want)
	}
}

func TestWritePage(t *testing.T) {
	t.Run("Failure", func(t *testing.T) {
		page := pageOf(t, faultyChildren["CreateWithoutAlreadyExists"].scenario(false))
		for _, want := range []string{
			"It does not survive one fault: already exists at: create ConfigMap default/web #1.",
			`status.phase: &#34;Created&#34; without faults, nothing here`,
			"RECONCILETEST_REPLAY=", "with the fault", "without faults", "user: create Shop default/web",
			"configmaps &#34;web&#34; already exists", "update Shop/status default/web", "from the cache",
			"&#34;ownerReferences&#34;: [", // from the body of a request
		} {
			expectText(t, page, want, true)
		}
		for _, external := range []string{"http:", "https:", "src=", "href=", "@import", "url("} {
			expectText(t, page, external, false)
		}
	})
	t.Run("FailureWithoutFaults", func(t *testing.T) {
		s := of(func(*reconciletest.Process) shopFunc {
			return func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				return ctrl.Result{}, errors.New("<script>alert(1)</script>")
			}
		}, reconciletest.Create(shop()))
		page := pageOf(t, s)
		expectText(t, page, "It does not succeed without any fault.", true)
		expectText(t, page, "&lt;script&gt;alert(1)", true) // escaped
		expectText(t, page, "<script>alert(1)", false)
		expectText(t, page, "Replay it", false)
	})
	t.Run("SecretsAreLeftOut", func(t *testing.T) {
		s := of(func(*reconciletest.Process) shopFunc {
			return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				if s.Status.Phase == "Open" {
					return ctrl.Result{}, nil
				}
				secret := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, StringData: map[string]string{"password": "correct horse"},
				}
				if err := c.Create(ctx, secret); err != nil {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, open(ctx, c, s, "Open")
			}
		}, reconciletest.Create(shop()))
		page := pageOf(t, s)
		expectText(t, page, "create Secret default/web", true)
		expectText(t, page, "correct horse", false)
		expectText(t, page, "Y29ycmVjdCBob3JzZQ", false)
	})
	t.Run("NoFailure", func(t *testing.T) {
		assert.Empty(t, pageOf(t, of(soundOperators["ReadsTheServerInEachPass"], reconciletest.Create(shop()))))
	})
	t.Run("UnusableScenario", func(t *testing.T) {
		assert.Empty(t, pageOf(t, reconciletest.Scenario{}))
	})
}

func TestWritePageFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "pages")
	t.Setenv("RECONCILETEST_PAGES", folder)
	report := reconciletest.ExploreQuietly(t, faultyChildren["CreateWithoutAlreadyExists"].scenario(false))
	address, err := reconciletest.WritePageFile(t, report)
	require.NoError(t, err)
	path, found := strings.CutPrefix(address, "file://")
	require.True(t, found, address)
	directory, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(folder, reconciletest.PageName(directory, "TestWritePageFile")), path)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(content), "</html>")

	t.Setenv("RECONCILETEST_PAGES", path) // the path is a file, so no folder can be made
	_, err = reconciletest.WritePageFile(t, report)
	require.Error(t, err)
}

func TestPageName(t *testing.T) {
	tests := map[string]struct{ reason, directory, test, want string }{
		"Package": {
			"a stranger sees which package failed",
			"/work/shop/controller", "TestShop", "controller-72d55e99-TestShop.html",
		},
		"SameNames": {
			"another project's page is not overwritten",
			"/work/bank/controller", "TestShop", "controller-7c5d5af8-TestShop.html",
		},
		"Subtest": {
			"a slash would name a folder",
			"/work/shop/controller", `TestShop/a:b\c`, "controller-72d55e99-TestShop_a_b_c.html",
		},
		"Root": {
			"a page is written there too",
			"/", "TestShop", "_-8a5edab2-TestShop.html",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, reconciletest.PageName(tc.directory, tc.test), tc.reason)
		})
	}
}
