package crd

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// compile compiles the schema of a kind, and sets the kind's strategy. It returns the types of the schema for server-side apply.
func compile(k *kind.Kind, validation *apiextensionsv1.CustomResourceValidation, scale *apiextensionsv1.CustomResourceSubresourceScale) (types objectTypes, err error) {
	if validation == nil || validation.OpenAPIV3Schema == nil {
		return types, fmt.Errorf("it has no schema: apiextensions.k8s.io/v1 requires one")
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(validation.OpenAPIV3Schema, &props, nil); err != nil {
		return types, err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return types, fmt.Errorf("the schema is not structural: %w", err)
	}
	if types, err = typeConverter(k.GVK, structural); err != nil {
		return types, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return types, err
	}
	c := &strategy{gvk: k.GVK, namespaced: k.Namespaced, hasStatus: k.HasStatus, scale: scale, schema: structural}
	if c.validator, _, err = apiservervalidation.NewSchemaValidator(&props); err != nil {
		return types, err
	}
	if status, has := props.Properties["status"]; has && k.HasStatus {
		if c.statusValidator, _, err = apiservervalidation.NewSchemaValidator(&status); err != nil {
			return types, err
		}
	}
	c.expressions = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	k.Strategy = c
	return types, nil
}
