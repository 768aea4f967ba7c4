package controlplane_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// The API server calls the webhooks of the manager that a test runs.
func ExampleNewWebhooks() {
	testWebhooks := func(t *testing.T) {
		cp := shared(t)
		webhooks := controlplane.NewWebhooks(t, cp, controlplane.WebhookOptions{
			Paths: []string{"../config/webhook/base"}, CRDs: []string{"../config/crd/bases"},
		})
		mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{WebhookServer: webhook.NewServer(webhooks.Options())})
		if err != nil {
			t.Fatal(err)
		}
		_ = mgr // set up the webhooks, and start it
	}
	_ = testWebhooks
}

// A test shows what happens if nobody has renewed the certificate. A manager that is started now serves an expired one.
func ExampleWebhooks_ReplaceCertificate() {
	testExpired := func(t *testing.T, webhooks *controlplane.Webhooks) {
		if err := webhooks.ReplaceCertificate(controlplane.Certificate{End: time.Now().Add(-time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	_ = testExpired
}

// Outside of tests, such as in a demo, a program installs webhooks and removes them.
func ExampleControlPlane_InstallWebhooks() {
	demo := func(ctx context.Context, cp *controlplane.ControlPlane) error {
		webhooks, err := cp.InstallWebhooks(ctx, controlplane.WebhookOptions{Paths: []string{"config/webhook/base"}})
		if err != nil {
			return err
		}
		fmt.Println("the API server calls port", webhooks.Options().Port)
		return webhooks.Uninstall(ctx)
	}
	_ = demo
}
