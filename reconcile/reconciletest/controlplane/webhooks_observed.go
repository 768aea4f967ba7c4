package controlplane

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// probe is the name of a webhook that nobody serves. It is also the label of the only objects for which the API server calls this webhook.
const probe = "probe.opblocks.dev"

// waitConfigurationsObserved waits until the API server acts on all webhook configurations that were written or deleted before. The API
// server sees configurations by a watch, a moment after they are written. So this method creates one more configuration, the probe, whose
// webhook fails, and waits until that webhook is called. The watch is ordered, so the API server has then seen all earlier changes too. The
// URL need not be served. No other probe may have the same value at the same time.
func (cp *ControlPlane) waitConfigurationsObserved(ctx context.Context, url, value string) error {
	name := metav1.ObjectMeta{GenerateName: "probe-"}
	always, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	calls := admissionregistrationv1.WebhookClientConfig{URL: &url}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	reviews := []string{"v1"}

	// The API server has one watch for each of the two kinds, so there are two probes.
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "mutating." + probe, ClientConfig: calls, Rules: rules, FailurePolicy: &always, SideEffects: &none,
		AdmissionReviewVersions: reviews, ObjectSelector: probed("mutating", value),
	}}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "validating." + probe, ClientConfig: calls, Rules: rules, FailurePolicy: &always, SideEffects: &none,
		AdmissionReviewVersions: reviews, ObjectSelector: probed("validating", value),
	}}}
	if err := cp.waitProbed(ctx, mutating, "mutating", value); err != nil {
		return err
	}
	return cp.waitProbed(ctx, validating, "validating", value)
}

// waitProbed creates the configuration of a probe, waits until its webhook is called, and deletes the configuration.
func (cp *ControlPlane) waitProbed(ctx context.Context, configuration client.Object, kind, value string) (err error) {
	if err := cp.client.Create(ctx, configuration); err != nil {
		return err
	}
	defer func() {
		if deleted := cp.client.Delete(context.WithoutCancel(ctx), configuration); err == nil {
			err = client.IgnoreNotFound(deleted)
		}
	}()
	return cp.processes.wait(ctx, apiserver, func(ctx context.Context) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceDefault, GenerateName: "probe-", Labels: probed(kind, value).MatchLabels,
		}}
		err := cp.client.Create(ctx, object, client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), kind+"."+probe) {
			return nil
		}
		return fmt.Errorf("the webhook %s.%s is not called yet: %w", kind, probe, err)
	})
}

// probed returns a selector of the objects for which the webhook of a probe is called.
func probed(kind, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{probe: kind + "-" + value}}
}
