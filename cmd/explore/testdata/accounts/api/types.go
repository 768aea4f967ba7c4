// Package api has the kinds of the operator.
package api

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Account has a definition and no sample.
type Account struct{ unstructured.Unstructured }

// Invoice has no definition.
type Invoice struct{ unstructured.Unstructured }

// AddToScheme adds the kinds to a scheme.
var AddToScheme = (&runtime.SchemeBuilder{}).AddToScheme
