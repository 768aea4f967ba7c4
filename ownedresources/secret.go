package ownedresources

import (
	"encoding/base64"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withData turns a Secret's stringData into data, as the API server does: it could never be
// found in a live Secret. Of a key in both, stringData counts.
func withData(obj client.Object) client.Object {
	switch obj := obj.(type) {
	case *corev1.Secret:
		return typedWithData(obj)
	case *unstructured.Unstructured:
		return untypedWithData(obj)
	}
	return obj
}

func typedWithData(secret *corev1.Secret) client.Object {
	if len(secret.StringData) == 0 {
		return secret
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

func untypedWithData(obj *unstructured.Unstructured) client.Object {
	texts, ok := obj.Object["stringData"].(map[string]any)
	if !ok || obj.GetAPIVersion() != "v1" || obj.GetKind() != "Secret" {
		return obj
	}
	converted := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	delete(converted.Object, "stringData")
	data, _ := obj.Object["data"].(map[string]any)
	if data = maps.Clone(data); data == nil {
		data = make(map[string]any, len(texts))
	}
	for k, v := range texts {
		if text, ok := v.(string); ok {
			data[k] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	converted.Object["data"] = data
	return converted
}
