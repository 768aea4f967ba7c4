package memoryserver

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/managedfields"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// compile makes a kind's rules from its schema, with the API server's own library.
func compile(k *kind, validation *apiextensionsv1.CustomResourceValidation, scale *apiextensionsv1.CustomResourceSubresourceScale) error {
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
	types, err := customTypes(k.gvk, structural)
	if err != nil {
		return err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return err
	}
	c := &custom{gvk: k.gvk, namespaced: k.namespaced, hasStatus: k.status, scale: scale, schema: structural}
	if c.validator, _, err = apiservervalidation.NewSchemaValidator(&props); err != nil {
		return err
	}
	if status, has := props.Properties["status"]; has && k.status {
		if c.statusValidator, _, err = apiservervalidation.NewSchemaValidator(&status); err != nil {
			return err
		}
	}
	c.expressions = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	k.rules = c
	k.fields = customFieldManagers(k, types)
	return nil
}

func customFieldManagers(k *kind, types managedfields.TypeConverter) map[string]*managedfields.FieldManager {
	managers := map[string]*managedfields.FieldManager{}
	if !k.status {
		managers[""] = newFieldManager(k, types, "", nil)
		return managers
	}
	managers[""] = newFieldManager(k, types, "", fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	managers[statusSubresource] = newFieldManager(k, types, statusSubresource, fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")))
	return managers
}
