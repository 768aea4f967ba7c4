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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// compile sets the strategy and the field managers of a kind by its schema.
func compile(k *kind.Kind, validation *apiextensionsv1.CustomResourceValidation, scale *apiextensionsv1.CustomResourceSubresourceScale) error {
	if validation == nil || validation.OpenAPIV3Schema == nil {
		return fmt.Errorf("it has no schema: apiextensions.k8s.io/v1 requires one")
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(validation.OpenAPIV3Schema, &props, nil); err != nil {
		return err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return fmt.Errorf("the schema is not structural: %w", err)
	}
	types, err := typeConverter(k.GVK, structural)
	if err != nil {
		return err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return err
	}
	c := &strategy{gvk: k.GVK, namespaced: k.Namespaced, hasStatus: k.HasStatus, scale: scale, schema: structural}
	if c.validator, _, err = apiservervalidation.NewSchemaValidator(&props); err != nil {
		return err
	}
	if status, has := props.Properties["status"]; has && k.HasStatus {
		if c.statusValidator, _, err = apiservervalidation.NewSchemaValidator(&status); err != nil {
			return err
		}
	}
	c.expressions = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	k.Strategy = c
	k.FieldManagers = kind.NewFieldManagers(k, types, fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	return nil
}
