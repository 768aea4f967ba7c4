// Package api has the kinds of the operator.
package api

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

type Depot struct{ unstructured.Unstructured }

type Crate struct{ unstructured.Unstructured }

type Lorry struct{ unstructured.Unstructured }

// AddToScheme adds the kinds to a scheme.
var AddToScheme = (&runtime.SchemeBuilder{}).AddToScheme
