package main

import (
	"fmt"
	"strings"
)

const (
	appFolder   = "examples/app/config"
	appSample   = appFolder + "/samples/app_v1_app.yaml"
	appResource = "apps.app.huolala.cn"
)

// app shows which changes by others to the sample's children stay, and which the operator reverts.
func app(t *tour) {
	t.title("app: install the operator")
	t.kubectl("apply", "--server-side", "--kustomize", appFolder+"/default", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(appFolder + "/crd/bases/*.yaml")
	t.runOperator("app", "app-system", "app-controller-manager")

	t.title("app: the tutorial's sample")
	t.kubectl("create", "--filename", appSample)
	t.until("two pods are ready", deployed("nginx:1.16.1", 2), "get", appResource)
	t.until("the Deployment is at 2/2", contains("2/2"), "get", "deployment", "nginx-app")
	var clusterIP string
	t.until("the Service has an address in the cluster", func(out string) error {
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 4 && fields[0] == "nginx-app" && fields[1] == "ClusterIP" && fields[4] == "8080/TCP" {
				clusterIP = fields[2]
				return nil
			}
		}
		return fmt.Errorf("no row contains ClusterIP and 8080/TCP: %q", out)
	}, "get", "service")

	t.title("app: an update keeps the restart by kubectl")
	t.kubectl("rollout", "restart", "deployment/nginx-app")
	t.set(`{"spec":{"image":"nginx:1.17"}}`)
	t.until("the new image is rolled out", deployed("nginx:1.17", 2), "get", appResource)
	t.until("the annotation of the restart is still there", contains("kubectl.kubernetes.io/restartedAt"),
		"get", "deployment", "nginx-app", "--output=jsonpath={.spec.template.metadata.annotations}")

	t.title("app: an update keeps the replicas of an autoscaler")
	replicas := []string{"get", "deployment", "nginx-app", "--output=jsonpath={.spec.replicas} {.status.readyReplicas} {.spec.template.spec.containers[*].image}"}
	t.say("When spec.replicas is removed, the number stays as it is, and an autoscaler may change it.")
	t.set(`{"spec":{"replicas":null}}`)
	t.until("there are still two replicas", contains("2 2 nginx:1.17"), replicas...)
	t.kubectl("scale", "deployment/nginx-app", "--replicas=5")
	t.set(`{"spec":{"image":"nginx:1.18"}}`)
	t.until("five pods run the new image", contains("5 5 nginx:1.18"), replicas...)

	t.title("app: the Service keeps its address")
	t.set(`{"spec":{"ports":[{"port":8080,"targetPort":80},{"port":9090}]}}`)
	t.until("it has another port, and still the same address", contains(clusterIP+" 8080 9090"),
		"get", "service", "nginx-app", "--output=jsonpath={.spec.clusterIP} {.spec.ports[*].port}")

	t.title("app: somebody else changes the children")
	t.kubectl("set", "image", "deployment/nginx-app", "nginx-app=nginx:1.0")
	t.until("the operator restores the image", contains("5 5 nginx:1.18"), replicas...)
	t.kubectl("delete", "service", "nginx-app")
	t.until("the operator has created the Service again", contains("8080/TCP,9090/TCP"), "get", "service")

	t.title("app: remove the ports")
	t.set(`{"spec":{"ports":null}}`)
	t.until("the Service was deleted", func(out string) error {
		if strings.Contains(out, "nginx-app") {
			return fmt.Errorf("it is still there: %q", out)
		}
		return nil
	}, "get", "services")

	appOfAnother(t)
}

// appOfAnother shows that the operator leaves a Deployment of somebody else alone.
func appOfAnother(t *tour) {
	t.title("app: a Deployment of somebody else")
	all := appResource + ",deployments,replicasets,pods,services"
	t.kubectl("delete", appResource, "nginx-app")
	t.until("only the Service of the API server itself is left", nothing, "get", all)
	t.kubectl("create", "deployment", "nginx-app", "--image=nginx:1.0")
	t.kubectl("create", "--filename", appSample)
	t.until("the reason is shown", contains("OwnedByAnother"), "get", appResource)
	t.until("the message says what to do", contains("it is left alone; choose another name, or let the operator take it over with Adopt"),
		"get", appResource, "nginx-app", `--output=jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	t.until("the Deployment was left alone", contains("nginx:1.0"), "get", "deployment", "nginx-app", "--output=wide")
	t.kubectl("delete", "deployment", "nginx-app")
	t.until("the operator has created its own Deployment", deployed("nginx:1.16.1", 2), "get", appResource)

	t.title("app: delete the sample")
	t.kubectl("delete", appResource, "nginx-app")
	t.until("only the Service of the API server itself is left", nothing, "get", all)
}

// set patches the sample.
func (t *tour) set(patch string) {
	t.kubectl("patch", appResource, "nginx-app", "--type=merge", "--patch", patch)
}

// deployed checks for the table row of the sample with an image and a number of pods desired, ready and available.
func deployed(image string, pods int) func(string) error {
	want := fmt.Sprintf("nginx-app %s %d %d %d Succeeded", image, pods, pods, pods)
	return func(out string) error {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			return fmt.Errorf("no row contains %s: %q", want, out)
		}
		return nil
	}
}
