// Package serviceaccount returns a client configuration with the permissions of a ServiceAccount, as a pod has it. Tests and the command
// controlplane use it.
package serviceaccount

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const tokenLifetime = 24 * time.Hour

// Config returns a client configuration with a token of a ServiceAccount, for the cluster of config. The token is valid for 24 hours. c
// requests the token, and must have the permission to create serviceaccounts/token. If the ServiceAccount does not exist,
// apierrors.IsNotFound recognizes the error.
func Config(ctx context.Context, c client.Client, config *rest.Config, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLifetime.Seconds()))}}
	if err := c.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("request a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	return config, nil
}
