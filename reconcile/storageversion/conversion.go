package storageversion

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

var (
	// errNoConversion means that a write would lose data, because only the operator can convert the versions.
	errNoConversion = errors.New("the versions of the kind convert in the operator, and the CustomResourceDefinition has no conversion webhook: " +
		"a write would drop the fields that the storage version does not have. Set spec.conversion.strategy to Webhook")

	// errDropsField means that a write would lose data, although the operator has no conversion between the versions.
	errDropsField = errors.New("a write would drop a field that the storage version does not have, and the CustomResourceDefinition has no conversion webhook: " +
		"set spec.conversion.strategy to Webhook, or take the field out of the older version")
)

// conversions describes how the operator converts between the versions of a kind.
type conversions struct {
	// converts reports whether the operator converts between the versions. It is called late, because converters may be registered until
	// the manager starts.
	converts func() bool

	// several reports whether the manager's scheme has types for several versions.
	several bool
}

// conversionsOf returns the conversions that a manager has for the kind of an object. If only some of the types have a conversion,
// it returns an error.
func conversionsOf(mgr manager.Manager, object client.Object, kind schema.GroupKind) (conversions, error) {
	convertible, err := conversion.IsConvertible(mgr.GetScheme(), object)
	if err != nil {
		return conversions{}, fmt.Errorf("migrate stored objects: find the conversion of kind %s: %w", kind.Kind, err)
	}
	converts := func() bool {
		_, registered := mgr.GetConverterRegistry().GetConverter(kind)
		return convertible || registered
	}
	return conversions{converts, len(mgr.GetScheme().VersionsForGroupKind(kind)) > 1}, nil
}

// check returns an error if the API server would drop fields when it writes an object in the storage version. That can happen only
// without a conversion webhook.
func (c conversions) check(crd *apiextensionsv1.CustomResourceDefinition) error {
	switch {
	case hasWebhook(crd) || len(crd.Spec.Versions) < 2:
		return nil
	case c.converts():
		return errNoConversion
	case !c.several || crd.Spec.PreserveUnknownFields:
		return nil
	}
	target := storageVersion(crd)
	for _, version := range crd.Spec.Versions {
		if path := droppedRoot(schemaOf(version), schemaOf(target)); path != "" {
			return fmt.Errorf("%w: %s of version %s", errDropsField, path, version.Name)
		}
	}
	return nil
}

func schemaOf(version apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil {
		return nil
	}
	return version.Schema.OpenAPIV3Schema
}

// droppedRoot is like dropped, for the schemas of whole objects. It ignores apiVersion, kind and metadata, which the API server always
// keeps.
func droppedRoot(from, to *apiextensionsv1.JSONSchemaProps) string {
	if from == nil || to == nil {
		return ""
	}
	root := *from
	root.Properties = maps.Clone(from.Properties)
	for _, always := range []string{"apiVersion", "kind", "metadata"} {
		delete(root.Properties, always)
	}
	return dropped(&root, to)
}

// dropped compares two schemas. It returns the path of the first field of from that the schema to does not have, so that the API server
// would remove it, or "". Fields are compared in the order of their names.
func dropped(from, to *apiextensionsv1.JSONSchemaProps) string {
	if from == nil || to == nil || to.XPreserveUnknownFields != nil && *to.XPreserveUnknownFields || to.XEmbeddedResource {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(from.Properties)) {
		field, values := from.Properties[name], to.AdditionalProperties
		target, known := to.Properties[name]
		switch {
		case known:
		case values != nil && values.Schema != nil:
			target = *values.Schema
		case values != nil && values.Allows:
			continue
		default:
			return "." + name
		}
		if path := dropped(&field, &target); path != "" {
			return "." + name + path
		}
	}
	if from.Items != nil && to.Items != nil {
		if path := dropped(from.Items.Schema, to.Items.Schema); path != "" {
			return "[]" + path
		}
	}
	if from.AdditionalProperties != nil && to.AdditionalProperties != nil {
		if path := dropped(from.AdditionalProperties.Schema, to.AdditionalProperties.Schema); path != "" {
			return ".*" + path
		}
	}
	return ""
}
