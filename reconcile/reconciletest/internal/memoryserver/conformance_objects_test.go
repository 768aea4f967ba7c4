package memoryserver

import (
	"iter"
	"maps"
	"slices"
)

// body returns random content for an object of the kind, without a name. Most of the time it is valid.
func (g *generator) body(kind string) map[string]any {
	body := map[string]any{}
	if metadata := g.metadata(); len(metadata) > 0 {
		body["metadata"] = metadata
	}
	switch kind {
	case "ConfigMap":
		body["data"] = g.data()
		g.maybe(body, 10, "immutable", true)
		g.maybe(body, 10, "binaryData", map[string]any{"b": "AAE="})
	case "Secret":
		body[pick(g, "data", "stringData")] = map[string]any{"k": pick(g, "dg==", "dmFsdWU=")}
		g.maybe(body, 30, "type", pick(g, "Opaque", "kubernetes.io/tls", "example.com/own"))
		g.maybe(body, 10, "immutable", true)
	case "Deployment":
		body["spec"] = g.deployment()
	case "StatefulSet":
		body["spec"] = g.statefulSet()
	case "Job":
		body["spec"] = g.job()
	case "Service":
		body["spec"] = g.service()
	case "Widget":
		body["spec"] = g.widget()
	case "Gauge":
		g.maybe(body, 90, "spec", map[string]any{"limit": pick[any](g, int64(1), int64(2), "x")})
		g.maybe(body, 80, "status", pick(g, map[string]any{"value": int64(1)}, map[string]any{"value": int64(2)}, map[string]any{}))
	case "Gadget", "Gadget.v1beta1":
		body["spec"] = g.gadget()
	case "Memcached":
		body["spec"] = g.memcached()
	case "Role":
		body["rules"] = pick(g, []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}, []any{map[string]any{"verbs": []any{}}}, []any{})
	case "RoleBinding":
		body["roleRef"] = map[string]any{"kind": pick(g, "Role", "ClusterRole", "Other"), "name": pick(g, "r", "r", "s")}
		body["subjects"] = []any{map[string]any{"kind": "User", "name": "alice"}, map[string]any{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}}
	case "ServiceAccount":
		g.maybe(body, 40, "automountServiceAccountToken", false)
		g.maybe(body, 40, "imagePullSecrets", []any{map[string]any{"name": pick(g, "s", "t")}})
	case "DatabaseUser":
		body["spec"] = g.databaseUser()
	}
	if spec := g.otherSpec(kind); spec != nil {
		body["spec"] = spec
	}
	g.maybe(body, 5, "status", map[string]any{"replicas": int64(4)})
	g.maybe(body, 3, "unknown", "x")
	return body
}

func (g *generator) maybe(m map[string]any, percent int, field string, value any) {
	if g.chance(percent) {
		m[field] = value
	}
}

func (g *generator) metadata() map[string]any {
	m := map[string]any{}
	g.maybe(m, 40, "labels", pick(g, map[string]any{"l": "1"}, map[string]any{"l": "2", "m": "3"}, map[string]any{}))
	g.maybe(m, 30, "annotations", pick(g, map[string]any{"a": "1"}, map[string]any{"b": "2"}))
	g.maybe(m, 10, "finalizers", []any{"example.com/one"})
	return m
}

func (g *generator) data() map[string]any {
	return pick(g, map[string]any{"k": "v"}, map[string]any{"k": "w", "l": "x"}, map[string]any{}, map[string]any{"not a key!": "v"})
}

func (g *generator) podSpec() map[string]any {
	container := map[string]any{"name": "web", "image": pick(g, "nginx", "nginx:1", "registry.example:5000/a/b:2", "nginx:latest", "nginx@sha256:"+digest)}
	g.maybe(container, 30, "ports", []any{map[string]any{"containerPort": pick(g, int64(80), int64(0), int64(70000)), "name": "http"}, map[string]any{"containerPort": int64(81), "protocol": "UDP"}})
	g.maybe(container, 30, "env", []any{map[string]any{"name": "A", "value": pick(g, "1", "2")}, map[string]any{"name": pick(g, "B", "C", "A")}})
	g.maybe(container, 20, "resources", map[string]any{"requests": map[string]any{"cpu": pick(g, "1000m", "0.1", "1")}, "limits": map[string]any{"cpu": pick[any](g, "1", "2", int64(1))}})
	g.maybe(container, 20, "livenessProbe", map[string]any{"httpGet": map[string]any{"port": pick[any](g, int64(80), "http")}})
	g.maybe(container, 10, "volumeMounts", []any{map[string]any{"name": "v", "mountPath": "/v"}})
	spec := map[string]any{"containers": []any{container}}
	if g.chance(20) {
		spec["containers"] = append(spec["containers"].([]any), map[string]any{"name": pick(g, "side", "web", ""), "image": "busybox"})
	}
	g.maybe(spec, 20, "volumes", []any{map[string]any{"name": "v", pick(g, "emptyDir", "configMap", "secret"): map[string]any{}}})
	g.maybe(spec, 10, "serviceAccountName", "robot")
	g.maybe(spec, 10, "nodeSelector", map[string]any{"disk": "ssd"})
	return spec
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (g *generator) template() map[string]any {
	metadata := map[string]any{"labels": map[string]any{"app": pick(g, "web", "web", "web", "web", "web", "other")}}
	g.maybe(metadata, 20, "annotations", map[string]any{"restarted": pick(g, "1", "2")})
	return map[string]any{"metadata": metadata, "spec": g.podSpec()}
}

func (g *generator) selector() map[string]any {
	return map[string]any{"matchLabels": map[string]any{"app": pick(g, "web", "web", "web", "web", "web", "web", "web", "web", "other")}}
}

func (g *generator) deployment() map[string]any {
	spec := map[string]any{"selector": g.selector(), "template": g.template()}
	g.maybe(spec, 60, "replicas", pick[any](g, int64(0), int64(1), int64(3), int64(3), int64(-1), nil))
	g.maybe(spec, 30, "strategy", pick(g, map[string]any{"type": "Recreate"}, map[string]any{"rollingUpdate": map[string]any{"maxSurge": pick[any](g, int64(1), "50%", "x")}},
		map[string]any{"rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(0)}}, map[string]any{"type": "Other"}))
	g.maybe(spec, 10, "minReadySeconds", pick(g, int64(5), int64(700)))
	g.maybe(spec, 10, "paused", true)
	g.maybe(spec, 3, "unknown", "x")
	return spec
}

func (g *generator) statefulSet() map[string]any {
	spec := map[string]any{"selector": g.selector(), "template": g.template(), "serviceName": pick(g, "s", "s", "s", "t")}
	g.maybe(spec, 60, "replicas", pick(g, int64(0), int64(1), int64(3)))
	g.maybe(spec, 30, "updateStrategy", pick(g, map[string]any{"type": "OnDelete"}, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(1)}}))
	claim := map[string]any{"metadata": map[string]any{"name": pick(g, "v", "w")}, "spec": map[string]any{"accessModes": []any{"ReadWriteOnce"},
		"resources": map[string]any{"requests": map[string]any{"storage": pick(g, "1Gi", "1024Mi")}}}}
	g.maybe(spec, 40, "volumeClaimTemplates", []any{claim})
	return spec
}

func (g *generator) job() map[string]any {
	template := g.template()
	template["spec"].(map[string]any)["restartPolicy"] = pick(g, "Never", "Never", "OnFailure", "Always")
	spec := map[string]any{"template": template}
	g.maybe(spec, 30, "parallelism", int64(2))
	g.maybe(spec, 20, "completions", int64(3))
	g.maybe(spec, 20, "suspend", true)
	g.maybe(spec, 20, "ttlSecondsAfterFinished", int64(60))
	return spec
}

func (g *generator) service() map[string]any {
	port := map[string]any{"port": pick(g, int64(80), int64(81), int64(80), int64(0))}
	g.maybe(port, 30, "name", pick(g, "http", "Not A Name"))
	g.maybe(port, 30, "targetPort", pick[any](g, int64(8080), "http"))
	ports := []any{port}
	if g.chance(20) {
		ports = append(ports, map[string]any{"port": pick(g, int64(80), int64(443)), "name": "https", "protocol": pick(g, "TCP", "UDP")})
	}
	spec := map[string]any{"ports": ports}
	g.maybe(spec, 70, "selector", map[string]any{"app": pick(g, "web", "other")})
	g.maybe(spec, 50, "type", pick(g, "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Other"))
	if spec["type"] == "ExternalName" && g.chance(70) {
		spec["externalName"] = "example.com"
	}
	g.maybe(spec, 15, "clusterIP", pick(g, "None", "None", "", "not an address"))
	g.maybe(spec, 10, "sessionAffinity", pick(g, "ClientIP", "None", "Other"))
	g.maybe(spec, 10, "externalTrafficPolicy", "Local")
	return spec
}

func (g *generator) widget() map[string]any {
	spec := map[string]any{}
	g.maybe(spec, 50, "replicas", pick[any](g, int64(0), int64(3), int64(5), int64(101), "three", nil))
	g.maybe(spec, 20, "minimum", pick(g, int64(1), int64(4)))
	g.maybe(spec, 30, "class", pick(g, "small", "large", "other"))
	g.maybe(spec, 30, "note", pick[any](g, "n", nil, "much too long a note"))
	g.maybe(spec, 20, "color", pick[any](g, "blue", nil))
	g.maybe(spec, 20, "size", pick[any](g, int64(1), "2Gi", true))
	g.maybe(spec, 20, "ratio", pick[any](g, 0.5, int64(1)))
	g.maybe(spec, 30, "tags", pick(g, []any{"a"}, []any{"a", "b"}, []any{"b", "b"}, []any{}))
	g.maybe(spec, 50, "parts", pick(g, []any{g.part()}, []any{g.part(), g.part()}, []any{}))
	g.maybe(spec, 30, "options", pick(g, map[string]any{"x": "1"}, map[string]any{"y": "2"}, map[string]any{"x": nil}))
	g.maybe(spec, 30, "frame", pick(g, map[string]any{}, map[string]any{"height": int64(2)}, map[string]any{"width": int64(3)}))
	g.maybe(spec, 20, "free", map[string]any{"anything": []any{int64(1), map[string]any{"goes": nil}}})
	g.maybe(spec, 20, "template", pick(g, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "unknown": "x"}, "spec": map[string]any{}}, map[string]any{"kind": "Pod"}))
	g.maybe(spec, 5, "unknown", map[string]any{"x": int64(1)})
	return spec
}

func (g *generator) gadget() map[string]any {
	spec := map[string]any{}
	g.maybe(spec, 40, "replicas", pick[any](g, int64(0), int64(3), "three", nil))
	g.maybe(spec, 40, "color", pick[any](g, "blue", "green", nil))
	g.maybe(spec, 30, "note", pick(g, "n", "longer", "much too long a note"))
	g.maybe(spec, 30, "label", pick[any](g, "l", nil))
	g.maybe(spec, 40, "tags", pick(g, []any{"a"}, []any{"a", "b"}, []any{"b", "b"}))
	return spec
}

func (g *generator) part() map[string]any {
	part := map[string]any{"name": pick(g, "p", "q", "r")}
	g.maybe(part, 30, "side", pick(g, "front", "back"))
	g.maybe(part, 40, "count", pick(g, int64(1), int64(2)))
	g.maybe(part, 20, "weights", []any{int64(1), int64(2)})
	g.maybe(part, 3, "unknown", "x")
	return part
}

func (g *generator) memcached() map[string]any {
	spec := map[string]any{}
	g.maybe(spec, 90, "size", pick(g, int64(0), int64(1), int64(3), int64(-1)))
	g.maybe(spec, 30, "memoryMB", pick(g, int64(64), int64(0)))
	g.maybe(spec, 30, "image", "memcached:1.6")
	g.maybe(spec, 20, "resources", map[string]any{"limits": map[string]any{"cpu": pick[any](g, "1", int64(1), "x")}})
	return spec
}

func (g *generator) databaseUser() map[string]any {
	spec := map[string]any{}
	g.maybe(spec, 50, "user", pick(g, "alice", "bob"))
	g.maybe(spec, 50, "grants", []any{map[string]any{"database": pick(g, "db", ""), "privileges": pick(g, []any{"ALL"}, []any{"SELECT", "INSERT"}, []any{"LOCK TABLES"}, []any{"SELECT", "SELECT"})}})
	g.maybe(spec, 30, "hosts", pick(g, []any{"%"}, []any{"10.0.0.1", "localhost"}, []any{}))
	g.maybe(spec, 30, "require", pick(g, "ssl", "other"))
	g.maybe(spec, 30, "password", pick(g, map[string]any{"name": "s", "key": "k"}, map[string]any{"key": "k"}, map[string]any{"name": "s"}))
	g.maybe(spec, 30, "deletionPolicy", pick(g, "Retain", "Delete"))
	return spec
}

// partial returns a part of a body, for a patch or an apply.
func (g *generator) partial(kind string) map[string]any {
	whole := g.body(kind)
	for _, field := range []string{"spec", "metadata"} {
		part, _ := whole[field].(map[string]any)
		for name := range sorted(part) {
			if g.chance(60) {
				delete(part, name)
			} else if g.chance(10) {
				part[name] = nil
			}
		}
		if len(part) == 0 {
			delete(whole, field)
		}
	}
	return whole
}

func (g *generator) status(kind string) map[string]any {
	status := map[string]any{}
	switch kind {
	case "Deployment":
		g.maybe(status, 70, "replicas", pick(g, int64(1), int64(3), int64(-1)))
		g.maybe(status, 50, "readyReplicas", pick(g, int64(1), int64(4)))
		g.maybe(status, 40, "conditions", []any{map[string]any{"type": "Available", "status": pick(g, "True", "False")}})
		g.maybe(status, 30, "observedGeneration", int64(1))
	case "Pod":
		g.maybe(status, 60, "phase", pick(g, "Running", "Succeeded"))
		g.maybe(status, 50, "conditions", []any{map[string]any{"type": "Ready", "status": pick(g, "True", "False")}})
		g.maybe(status, 30, "podIP", "10.0.0.9")
	case "StatefulSet":
		status["replicas"] = int64(1)
		g.maybe(status, 50, "readyReplicas", pick(g, int64(1), int64(4)))
	case "Gadget", "Gadget.v1beta1":
		g.maybe(status, 50, "replicas", int64(3))
		g.maybe(status, 50, "phase", "New")
		g.maybe(status, 50, "message", "m")
	case "Widget":
		g.maybe(status, 50, "replicas", pick[any](g, int64(1), int64(3), "x"))
		g.maybe(status, 30, "phase", pick(g, "New", "Done", "Other"))
		g.maybe(status, 40, "conditions", []any{map[string]any{"type": pick(g, "A", "B"), "status": "True"}})
	case "Memcached":
		g.maybe(status, 80, "nodes", []any{"n1"})
		g.maybe(status, 30, "readyReplicas", int64(1))
		g.maybe(status, 30, "conditions", []any{map[string]any{"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}})
	case "DatabaseUser":
		g.maybe(status, 50, "conditions", []any{map[string]any{"type": "Ready", "status": pick(g, "True", "Maybe")}})
	case "Service":
		g.maybe(status, 50, "loadBalancer", map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}})
	}
	return status
}

// sorted iterates over a map in the order of its keys, so that the same seed leads to the same requests.
func sorted(m map[string]any) iter.Seq[string] { return slices.Values(slices.Sorted(maps.Keys(m))) }

// otherSpec returns a random spec for kinds whose content is little more than the spec.
func (g *generator) otherSpec(kind string) map[string]any {
	spec := map[string]any{}
	switch kind {
	case "DaemonSet":
		spec["selector"], spec["template"] = g.selector(), g.template()
		g.maybe(spec, 30, "updateStrategy", pick(g, map[string]any{"type": "OnDelete"}, map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": "10%"}}))
	case "ReplicaSet":
		spec["selector"], spec["template"] = g.selector(), g.template()
		g.maybe(spec, 50, "replicas", pick(g, int64(0), int64(2)))
	case "CronJob":
		spec["schedule"], spec["jobTemplate"] = pick(g, "0 * * * *", "@daily"), map[string]any{"spec": g.job()}
		g.maybe(spec, 30, "concurrencyPolicy", pick(g, "Forbid", "Replace"))
		g.maybe(spec, 30, "suspend", true)
	case "HorizontalPodAutoscaler":
		spec["scaleTargetRef"] = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
		spec["maxReplicas"] = pick(g, int64(5), int64(10), int64(0))
		g.maybe(spec, 40, "minReplicas", pick(g, int64(2), int64(7)))
		g.maybe(spec, 30, "behavior", pick(g, map[string]any{"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(60)}}, map[string]any{"scaleUp": map[string]any{"policies": []any{map[string]any{"type": "Pods", "value": int64(2), "periodSeconds": int64(30)}}}}))
	case "PodDisruptionBudget":
		g.maybe(spec, 70, "selector", g.selector())
		g.maybe(spec, 50, "minAvailable", pick[any](g, int64(1), "50%", "x", int64(-1)))
		g.maybe(spec, 30, "maxUnavailable", pick[any](g, int64(1), "10%"))
	case "Ingress":
		g.maybe(spec, 70, "rules", []any{map[string]any{"host": "example.com", "http": map[string]any{"paths": []any{map[string]any{
			"path": "/", "pathType": pick(g, "Prefix", "Exact"), "backend": map[string]any{"service": map[string]any{"name": "web", "port": map[string]any{"number": int64(80)}}}}}}}})
		g.maybe(spec, 30, "defaultBackend", map[string]any{"service": map[string]any{"name": "web", "port": map[string]any{"name": "http"}}})
	case "NetworkPolicy":
		spec["podSelector"] = pick(g, map[string]any{}, g.selector())
		g.maybe(spec, 50, "ingress", pick(g, []any{map[string]any{}}, []any{map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}))
		g.maybe(spec, 30, "egress", []any{map[string]any{"ports": []any{map[string]any{"port": "dns", "protocol": "UDP"}}}})
	case "PersistentVolumeClaim":
		g.maybe(spec, 90, "accessModes", []any{"ReadWriteOnce"})
		g.maybe(spec, 90, "resources", map[string]any{"requests": map[string]any{"storage": pick(g, "1Gi", "1Gi", "2Gi")}})
	case "Lease":
		g.maybe(spec, 50, "holderIdentity", pick(g, "one", "two"))
		g.maybe(spec, 50, "leaseDurationSeconds", pick(g, int64(15), int64(0)))
		g.maybe(spec, 30, "renewTime", "2026-01-02T03:04:05.000006Z")
	case "Pod":
		spec = g.podSpec()
		g.maybe(spec, 50, "nodeName", "n")
		g.maybe(spec, 20, "restartPolicy", "Never")
		g.maybe(spec, 20, "tolerations", []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}})
		g.maybe(spec, 20, "terminationGracePeriodSeconds", int64(5))
	case "App":
		g.maybe(spec, 90, "image", pick(g, "nginx", ""))
		g.maybe(spec, 40, "replicas", pick(g, int64(1), int64(-1)))
		g.maybe(spec, 40, "ports", []any{map[string]any{"port": pick(g, int64(80), int64(70000))}})
		g.maybe(spec, 40, "configMapRefs", pick(g, []any{map[string]any{"name": "c"}}, []any{map[string]any{}}, []any{map[string]any{"name": "c"}, map[string]any{"name": "c"}}))
	default:
		return nil
	}
	return spec
}
