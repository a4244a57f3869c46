#!/usr/bin/env python3
"""`volta serve` with a language model, asked by PyPI's client `openai`. Without that package the test is skipped.

    tests/command/openai_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import concurrent.futures
import pathlib
import sys
import tempfile
import unittest

from common import SKIPPED, Served, train_text

try:
    import openai
except ImportError:
    print("skipped: this Python has no package openai (pip install openai; cmake -D VOLTA_TEST_PYTHON=PYTHON takes another one)")
    sys.exit(SKIPPED)


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.server = Served(train_text(pathlib.Path(held.name)), "--name", "letters")
        cls.addClassCleanup(cls.server.stop)
        cls.client = openai.OpenAI(base_url=cls.server.address + "/v1", api_key="none", max_retries=0, timeout=60)
        cls.addClassCleanup(cls.client.close)

    def complete(self, **more):
        return self.client.completions.create(**{"model": "letters", "prompt": "abc", "max_tokens": 20, "temperature": 0, **more})

    def refused(self, kind, param, **request):
        with self.assertRaises(kind) as caught:
            self.complete(**request)
        error = caught.exception
        self.assertEqual((error.type, error.param), ("invalid_request_error", param), error.body)
        self.assertTrue(error.body["message"])
        return error

    def test_models(self):
        listed = self.client.models.list().data
        self.assertEqual([(m.id, m.object) for m in listed], [("letters", "model")])
        self.assertEqual(self.client.models.retrieve("letters").id, "letters")
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("numbers")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_whole(self):
        answer = self.complete()
        self.assertEqual((answer.object, answer.model, len(answer.choices)), ("text_completion", "letters", 1))
        self.assertEqual((len(answer.choices[0].text), answer.choices[0].finish_reason), (20, "length"))
        self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens), (3, 20, 23))
        self.assertTrue(answer.id.startswith("cmpl-"))
        self.assertEqual(self.complete().choices[0].text, answer.choices[0].text)  # temperature 0
        self.assertEqual(self.complete(max_tokens=0).choices[0].text, "")

    def test_streamed_is_the_same_text(self):
        whole = self.complete().choices[0].text
        pieces = list(self.complete(stream=True))
        self.assertEqual("".join(p.choices[0].text for p in pieces), whole)
        self.assertEqual(len(pieces), 21)  # a token each, and the reason
        self.assertEqual([p.choices[0].finish_reason for p in pieces], [None] * 20 + ["length"])
        self.assertEqual({p.id for p in pieces}, {pieces[0].id})
        counted = list(self.complete(stream=True, stream_options={"include_usage": True}))
        self.assertEqual((counted[-1].choices, counted[-1].usage.completion_tokens, counted[0].usage), ([], 20, None))

    def test_seed_temperature_and_top_p(self):
        def text(**more):
            return self.complete(**{"temperature": 2, "max_tokens": 60, **more}).choices[0].text
        self.assertEqual(text(seed=7), text(seed=7))
        self.assertEqual(text(seed=-7), text(seed=-7))
        self.assertGreater(len({text(seed=seed) for seed in range(8)}), 1)
        self.assertEqual(text(seed=7), "".join(p.choices[0].text for p in self.complete(temperature=2, max_tokens=60, seed=7, stream=True)))
        self.assertEqual(text(seed=1, top_p=1e-6), text(temperature=0))  # the likeliest alone is left

    def test_stop(self):
        whole = self.complete().choices[0].text
        for stops in [whole[3:5], [whole[3:5]], ["never", whole[3:5]]]:
            for stream in [False, True]:
                answer = self.complete(stop=stops, stream=stream)
                choices = [p.choices[0] for p in answer] if stream else [answer.choices[0]]
                self.assertEqual("".join(c.text for c in choices), whole[:whole.index(whole[3:5])])
                self.assertEqual(choices[-1].finish_reason, "stop")

    def test_several_choices(self):
        answer = self.complete(n=3, temperature=2, seed=1, max_tokens=40)
        self.assertEqual([c.index for c in answer.choices], [0, 1, 2])
        self.assertGreater(len({c.text for c in answer.choices}), 1)
        self.assertEqual(answer.usage.completion_tokens, 120)
        texts = ["", "", ""]
        for piece in self.complete(n=3, temperature=2, seed=1, max_tokens=40, stream=True):
            texts[piece.choices[0].index] += piece.choices[0].text
        self.assertEqual(texts, [c.text for c in answer.choices])

    def test_refusals_are_openais(self):
        self.assertEqual(self.refused(openai.NotFoundError, "model", model="gpt-9").code, "model_not_found")
        for param, value in [("max_tokens", 1000000), ("max_tokens", -1), ("temperature", -1), ("temperature", 2.5), ("temperature", "hot"),
                             ("top_p", 1.5), ("n", 0), ("n", 1000), ("stop", ["a"] * 5), ("stop", [""]), ("prompt", ["a", "b"]),
                             ("prompt", [1, 2]), ("logprobs", 3), ("echo", True), ("suffix", "x"), ("best_of", 4),
                             ("presence_penalty", 1), ("frequency_penalty", 0.5), ("logit_bias", {"1": 1})]:
            error = self.refused(openai.BadRequestError, param, **{param: value})
            self.assertIn(param, str(error))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(prompt="Z")
        self.assertIn("no 'Z'", str(caught.exception))
        for stream in [False, True]:  # and the refusal of a stream is no stream
            self.refused(openai.BadRequestError, "temperature", temperature=-1, stream=stream)

    def test_a_stream_left_early_frees_the_server(self):
        stream = self.complete(max_tokens=4096, stream=True)
        self.assertTrue(next(iter(stream)).choices)
        stream.close()
        self.assertEqual(len(self.complete().choices[0].text), 20)

    def test_many_at_once(self):
        want = self.complete().choices[0].text
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            streamed = list(pool.map(lambda _: "".join(p.choices[0].text for p in self.complete(stream=True)), range(24)))
        self.assertEqual(set(streamed), {want})


if __name__ == "__main__":
    unittest.main()
