// The authors' planner (msr-fiddle/piper, algo.cpp) as a program that answers
// one problem, or judges one answer, in place of the experiments of its main:
//
//   g++ -O3 -I PIPER planner/internal/compare/testdata/piper.cpp -o piper
//   piper FILE.json DEVICES GIB             their planner's time per sample
//   piper FILE.json DEVICES GIB PLAN.json   that of a plan, by getTPSForResult
//
// 1e30 is their sign of a plan that does not fit, or of none.
#define main experiments
#include "algo.cpp"
#undef main

static Result planOf(const Instance &instance, const char *path)
{
	json file;
	ifstream(path) >> file;
	Result plan;
	for (const json &given : file.at("stages")) {
		ResultStage stage;
		stage.dataParallelDegree = given.at("dataParallelDegree");
		stage.tensorParallelDegree = given.at("tensorParallelDegree");
		for (const json &id : given.at("nodes"))
			stage.nodes.push_back(instance.newNumber.at(id));
		for (const json &pair : given.at("TMPCids"))
			stage.TMPCids[instance.newNumber.at(pair.at(0))] = pair.at(1);
		plan.stages.push_back(stage);
	}
	return plan;
}

int main(int count, char **word)
{
	if (count < 4)
		return 2;
	json file;
	ifstream(word[1]) >> file;
	Instance instance = file.get<Instance>();
	instance.maxDevices = atoi(word[2]);
	instance.maxMemoryPerDevice = atof(word[3]) * (1LL << 30);
	instance.bandwidth = 25.0 * (1LL << 30);
	Graph graph(instance);
	printf("%.17g\n", graph.getTPSForResult(count > 4 ? planOf(instance, word[4]) : graph.runDP()));
	return 0;
}
