package phases

import (
	"strconv"
	"strings"
	"testing"
)

// TestRemedies: each refusal names degrees, and these work as printed.
func TestRemedies(t *testing.T) {
	pipeline := folder(t, fluxSmall())
	for _, c := range []struct {
		gpus  int
		asked Workload
		want  string
	}{
		{4, Workload{Ulysses: 2}, "= 1 × 2 × 1 × 1 = 2, and there are 4 GPUs; on --gpus 4: --ulysses 2 --pipefusion 2, or --ulysses 2 --ring 2, or --ulysses 4"},
		{5, Workload{Ulysses: 5}, "ulysses 5 does not divide the 24 heads of FluxTransformer2DModel; on --gpus 4: --ulysses 4, or"},
		{3, Workload{Ring: 3}, "ulysses × ring = 3 does not divide the 64 rows of tokens of height 1024 (16 pixels each); on --gpus 3: --pipefusion 3"},
		{2, Workload{CFGDegree: 2}, "cfg degree 2: the pipeline has no negative prompt"},
		{4, Workload{CFGDegree: 4}, "cfg degree 4: there are a prompt and its negative"},
		{11, Workload{PipeFusion: 11}, "pipefusion 11 is more than the 7 blocks of FluxTransformer2DModel; on --gpus 12: --ring 4 --pipefusion 3, or"},
		{4, Workload{Ulysses: 4, FullyShardDegree: 3}, "fully_shard degree 3 does not divide the 4 GPUs of the other degrees; on --gpus 4: --ulysses 4 --fully-shard-degree 4"},
		{4, Workload{FullyShardDegree: 3}, "; on --gpus 4: "},
		{2, Workload{PipeFusion: 2, FullyShardDegree: 2}, "one of the two; on --gpus 2: "},
		{1, Workload{Ulysses: 2}, "= 2, and there are 1 GPUs; on --gpus 1: no degrees"},
	} {
		_, err := Of(pipeline, c.asked, h200, c.gpus)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v on %d: %v, want %q", c.asked, c.gpus, err, c.want)
			continue
		}
		_, remedies, _ := strings.Cut(err.Error(), "; on --gpus ")
		gpus, remedies, _ := strings.Cut(remedies, ": ")
		count, _ := strconv.Atoi(gpus)
		for _, flags := range strings.Split(remedies, ", or ") {
			if _, err := Of(pipeline, workloadOf(t, flags), h200, count); err != nil {
				t.Errorf("%q of %v: %v", flags, c.asked, err)
			}
		}
	}
}

// TestOffloadOnSeveral: offload is refused as such, not for a degree that no one gave.
func TestOffloadOnSeveral(t *testing.T) {
	if _, err := Of(folder(t, fluxSmall()), Workload{Offload: "model"}, h200, 2); err == nil || !strings.HasPrefix(err.Error(), "offload model needs one GPU (--gpus 1)") {
		t.Error(err)
	}
}

// workloadOf parses printed degrees.
func workloadOf(t *testing.T, flags string) Workload {
	t.Helper()
	var work Workload
	if flags == "no degrees" {
		return work
	}
	words := strings.Fields(flags)
	for i := 0; i+1 < len(words); i += 2 {
		count, err := strconv.ParseInt(words[i+1], 10, 64)
		place := map[string]*int64{
			"--cfg-degree": &work.CFGDegree, "--ulysses": &work.Ulysses, "--ring": &work.Ring, "--pipefusion": &work.PipeFusion, "--fully-shard-degree": &work.FullyShardDegree,
		}[words[i]]
		if err != nil || place == nil {
			t.Fatalf("%q", flags)
		}
		*place = count
	}
	return work
}

// TestVideoTokens: HunyuanVideo's tokens are 33 × 45 × 80.
func TestVideoTokens(t *testing.T) {
	pipeline := folder(t, map[string]string{
		"model_index.json":        `{"_class_name":"HunyuanVideoPipeline","transformer":["diffusers","HunyuanVideoTransformer3DModel"]}`,
		"transformer/config.json": `{"_class_name":"HunyuanVideoTransformer3DModel"}`,
	})
	const want = "ulysses × ring = 7 does not divide the 118800 tokens of a video; on --gpus 6: --ring 6, or"
	if _, err := Of(pipeline, Workload{Ring: 7}, h200, 7); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
