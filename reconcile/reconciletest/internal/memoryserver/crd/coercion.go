package crd

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// coerce does to an unstructured object what decoding does to a Go type: it removes fields that the schema does not have, and null where
// the schema does not allow it. If track is true, it returns the paths of the unknown fields.
func (c *strategy) coerce(object map[string]any, track bool) (unknown []string, err error) {
	apiVersion, kind := object["apiVersion"], object["kind"]
	metadata, has, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: track})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(object, c.schema, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.schema)
	invalid, embedded := objectmeta.CoerceWithOptions(nil, object, c.schema, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: track})
	if invalid != nil {
		return nil, invalid
	}
	unknown = append(unknown, embedded...)
	if apiVersion != nil {
		object["apiVersion"] = apiVersion
	}
	if kind != nil {
		object["kind"] = kind
	}
	if has {
		return unknown, objectmeta.SetObjectMeta(object, metadata)
	}
	return unknown, nil
}
