package ownedresources

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withData turns a Secret's stringData into data, as the API server does: it could never be
// found in a live Secret. Of a key in both, stringData counts.
func withData(obj client.Object) client.Object {
	secret, ok := obj.(*corev1.Secret)
	if !ok || len(secret.StringData) == 0 {
		return obj
	}
	converted := *secret
	converted.StringData = nil
	converted.Data = maps.Clone(secret.Data)
	if converted.Data == nil {
		converted.Data = make(map[string][]byte, len(secret.StringData))
	}
	for k, v := range secret.StringData {
		converted.Data[k] = []byte(v)
	}
	return &converted
}
