package controlplane

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepConversion copies the conversion from the CustomResourceDefinition on the API server, if a webhook on this machine does it. The
// file of the CustomResourceDefinition does not name this webhook, so installing the file would end the conversion.
func keepConversion(ctx context.Context, c client.Reader, crd *apiextensionsv1.CustomResourceDefinition) error {
	if isUnconverted(crd) {
		return nil
	}
	var live apiextensionsv1.CustomResourceDefinition
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), &live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if conversionURL(&live) != "" {
		crd.Spec.Conversion = live.Spec.Conversion
	}
	return nil
}

// isUnconverted reports whether the file of a CustomResourceDefinition has the conversion strategy None.
func isUnconverted(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter
}

// conversionURL returns the URL of the conversion webhook. It returns "" if there is none, or if the webhook is behind a Service.
func conversionURL(crd *apiextensionsv1.CustomResourceDefinition) string {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || conversion.Webhook.ClientConfig.URL == nil {
		return ""
	}
	return *conversion.Webhook.ClientConfig.URL
}

// convertBy sets a conversion webhook at a URL in a CustomResourceDefinition. The CA signs the certificate of the webhook.
func convertBy(crd *apiextensionsv1.CustomResourceDefinition, url string, ca []byte) {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"}, // the only version that controller-runtime's webhook knows
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
		},
	}
}

// endConversion sets the conversion strategy None in a CustomResourceDefinition, if the webhook at this URL converts it.
func endConversion(ctx context.Context, c client.Client, name, url string) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
		return client.IgnoreNotFound(err)
	}
	if conversionURL(&crd) != url {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"conversion":{"strategy":"None","webhook":null}}}`, crd.ResourceVersion)
	return client.IgnoreNotFound(c.Patch(ctx, &crd, client.RawPatch(types.MergePatchType, patch)))
}
