package memoryserver

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// coerce does to an untyped object what decoding into a Go type does by itself: fields that the
// schema does not have go, and so does null where it may not be. It gives the paths of what it
// dropped, if they are asked for.
func (c *custom) coerce(object map[string]any, track bool) (unknown []string, err error) {
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
