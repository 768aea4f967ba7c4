package main

import (
	"fmt"
	"slices"
	"strings"
)

const eruFolder = "examples/eru/config"

// eru shows how a Deployment requests an Eru, and how the Eru restarts it.
func eru(t *tour) {
	t.title("eru: install the operator")
	t.kubectl("apply", "--server-side", "--kustomize", eruFolder+"/default", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(eruFolder + "/crd/bases/*.yaml")
	t.runOperator("eru", "eru-system", "eru-controller-manager", "--min-interval=8s")

	t.title("eru: a Deployment requests an Eru by an annotation")
	t.kubectl("create", "--filename", eruFolder+"/samples/deployment.yaml")
	t.until("the operator has created an Eru, which waits to be enabled", row("nginx nginx 0 0 * * * false Stoping"), "get", "erus")
	t.until("its annotations hold fields of the spec as JSON", containsAll(
		`mtsre.meitu.com/deploymentName: '"nginx"'`, `mtsre.meitu.com/enabled: "false"`, `mtsre.meitu.com/schedule: '"0 0 * * *"'`,
		"mtsre.meitu.com/created-by: eru-operator", "create eru cr success,wait to start", "phase: Stoping"),
		"get", "eru", "nginx", "--output=yaml")

	t.title("eru: enable it, with a schedule")
	var before []string
	t.until("two pods run", func(out string) error {
		before = strings.Fields(out)
		if len(before) != 2 {
			return fmt.Errorf("%d pods are Running, want 2", len(before))
		}
		return nil
	}, "get", "pods", "--field-selector=status.phase=Running", "--output=name")
	t.patchEru(`{"spec":{"enabled":true,"schedule":"@every 8s"}}`)
	t.until("the schedule runs, and NEXT is the next due time", row("nginx nginx @every 8s true Running"), "get", "erus")
	t.until("the Deployment was restarted: two new pods run", func(out string) error {
		now := strings.Fields(out)
		if len(now) != 2 || slices.ContainsFunc(now, func(pod string) bool { return slices.Contains(before, pod) }) {
			return fmt.Errorf("these are not two new pods: %q", out)
		}
		return nil
	}, "get", "pods", "--field-selector=status.phase=Running", "--output=name")
	t.until("the operator has observed that the rollout is complete", contains("RolloutComplete"),
		"get", "eru", "nginx", "--output=jsonpath={.status.conditions[-1:]}")
	t.until("the due time is in an annotation of the pod template", contains("kubectl.kubernetes.io/restartedAt"),
		"get", "deployment", "nginx", "--output=jsonpath={.spec.template.metadata.annotations}")
	t.until("there is an event on the Deployment", contains("as was due at"), "get", "events", "--field-selector=involvedObject.kind=Deployment,reason=Restarted")

	t.title("eru: a schedule that is never due")
	t.patchEru(`{"spec":{"schedule":"0 0 30 2 *"}}`)
	t.until("the condition says why", contains("it never comes"), "get", "eru", "nginx", "--output=jsonpath={.status.conditions[-1:].message}")
	t.patchEru(`{"spec":{"schedule":"30 4 * * SUN","timeZone":"Europe/Berlin"}}`)
	t.until("the schedule runs again, and NEXT is in UTC", row("nginx nginx 30 4 * * SUN true Running"), "get", "erus")

	t.title("eru: remove the annotation")
	t.kubectl("annotate", "deployment", "nginx", "mtsre.meitu.com/eru-")
	t.until("the schedule stops, and stays in the spec", row("nginx nginx 30 4 * * SUN true Stoping"), "get", "erus")
	t.until("the conditions are its history", contains("AnnotationRemoved"), "get", "eru", "nginx",
		`--output=jsonpath={range .status.conditions[*]}{.lastedTranslationTime}{" "}{.type}{" "}{.ready}{" "}{.reason}{"\n"}{end}`)

	t.title("eru: delete the Deployment")
	t.kubectl("delete", "deployment", "nginx")
	t.until("the Eru was deleted with it", nothing, "get", "erus,deployments")
}

func (t *tour) patchEru(patch string) {
	t.kubectl("patch", "eru", "nginx", "--type=merge", "--patch", patch)
}
