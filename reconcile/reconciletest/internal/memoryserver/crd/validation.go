package crd

import (
	"context"
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (c *strategy) validateContent(obj client.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(obj, c.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, apiservervalidation.ValidateCustomResource(nil, fieldsOf(obj), c.validator)...)
	errs = append(errs, c.validateScale(obj)...)
	errs = append(errs, c.validateEmbeddedMeta(obj)...)
	return append(errs, listtype.ValidateListSetsAndMaps(nil, c.schema, fieldsOf(obj))...)
}

// ValidateUpdate ignores invalid fields that were the same before, as the API server does (ratcheting).
func (c *strategy) ValidateUpdate(obj, live client.Object) field.ErrorList {
	pair := common.NewCorrelatedObject(fieldsOf(obj), fieldsOf(live), &model.Structural{Structural: c.schema})
	errs := apiservervalidation.ValidateCustomResourceUpdate(nil, fieldsOf(obj), fieldsOf(live), c.validator, apiservervalidation.WithRatcheting(pair))
	errs = append(errs, c.validateScale(obj)...)
	errs = append(errs, c.validateEmbeddedMeta(obj)...)
	errs = append(errs, c.validateLists(obj, live)...)
	return append(errs, c.validateExpressions(context.Background(), obj, live, errs, cel.WithRatcheting(pair))...)
}

func (c *strategy) ValidateStatus(obj, live client.Object) (errs field.ErrorList) {
	pair := common.NewCorrelatedObject(fieldsOf(obj), fieldsOf(live), &model.Structural{Structural: c.schema})
	if status, has := fieldsOf(obj)["status"]; has && c.statusValidator != nil {
		errs = apiservervalidation.ValidateCustomResourceUpdate(field.NewPath("status"), status, fieldsOf(live)["status"],
			c.statusValidator, apiservervalidation.WithRatcheting(pair.Key("status")))
	}
	errs = append(errs, c.validateScaleStatus(obj)...)
	errs = append(errs, c.validateLists(obj, live)...)
	return append(errs, c.validateExpressions(context.Background(), obj, live, errs, cel.WithRatcheting(pair))...)
}

// validateEmbeddedMeta validates the metadata of embedded objects. Since Kubernetes 0.37, objectmeta.Validate takes a context.
func (c *strategy) validateEmbeddedMeta(obj client.Object) field.ErrorList {
	switch validate := any(objectmeta.Validate).(type) {
	case func(*field.Path, any, *structuralschema.Structural, bool) field.ErrorList: // 0.36
		return validate(nil, fieldsOf(obj), c.schema, false)
	case func(context.Context, *field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(context.Background(), nil, fieldsOf(obj), c.schema, false)
	default:
		panic(fmt.Sprintf("objectmeta.Validate of k8s.io/apiextensions-apiserver has the unknown type %T", validate))
	}
}

func (c *strategy) validateLists(obj, live client.Object) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, c.schema, fieldsOf(obj))
	if len(errs) > 0 && len(listtype.ValidateListSetsAndMaps(nil, c.schema, fieldsOf(live))) > 0 {
		return nil
	}
	return errs
}

// validateExpressions evaluates the CEL rules, unless the object already has errors that could make the rules fail.
func (c *strategy) validateExpressions(ctx context.Context, obj, live client.Object, found field.ErrorList, options ...cel.Option) field.ErrorList {
	if c.expressions == nil {
		return nil
	}
	for _, err := range found {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; "+
				"correct the existing errors to complete validation")}
		}
	}
	var before any
	if live != nil {
		before = fieldsOf(live)
	}
	errs, _ := c.expressions.Validate(ctx, nil, c.schema, fieldsOf(obj), before, celconfig.RuntimeCELCostBudget, options...)
	return errs
}
